/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/drivers.h"
#include "host/machine.h"
#include "host/perf_directory.h"
#include "rt/lost.h"
#include "rt/observer.h"
#include "rt/throttle.h"
#include "smalti/session.h"

#include <stdatomic.h>
#include <sys/types.h>

struct smalti_counting;
struct smalti_device;
struct smalti_meters;
struct smalti_trace;
struct smalti_transfer;
struct smalti_codelet;
struct smalti_place_facts;
struct smalti_places;
struct smalti_pool;
struct smalti_recent;
struct smalti_replay;

/* Members are set when the session is opened, unless they say otherwise. */
struct smalti_session {
	struct smalti_perf_directory directory;
	struct smalti_machine_cpus cpus;
	int workers;
	int planned_workers;  /* of the rank with the fewest workers; plans use it */
	int64_t memory_limit; /* 0: none */
	int64_t memory; /* bytes that each rank's process may hold: the limit, else smalti_machine_memory() */
	pid_t process;
	bool offloads;       /* data that does not fit under the limit goes to the scratch directory */
	bool inserts_failed; /* failed task groups insert all their tasks, since all ranks insert the same
				ones */
	bool sequential;     /* without StarPU: see smalti_session_open_sequential() */
	bool reproducible;   /* with devices: see session/reproducible.h */
	bool devices_lead, devices_alone; /* see rt/devices_alone.h */
	int64_t task_bytes; /* limit on a task's tiles that every device allows; without devices INT64_MAX */
	int lowest_priority, highest_priority;
	struct smalti_counting *counting; /* NULL: tasks run */
	struct smalti_observer observers[SMALTI_OBSERVERS];
	int observer_count;
	struct smalti_trace *trace;      /* NULL: not traced */
	struct smalti_recent *recent;    /* NULL: none are kept */
	struct smalti_replay *replay;    /* NULL: a policy decides */
	struct smalti_codelet *codelets; /* one per op in the order of smalti_ops[], then fused tasks' */
	struct smalti_places *places;    /* NULL: a sequential session */
	struct smalti_place_facts *rank_facts; /* from rt/rank_facts.h; NULL: not gathered */
	struct smalti_pool *pool;              /* of the tiles in main memory */
	struct smalti_throttle throttle;
	struct smalti_lost lost;
	_Atomic int64_t *busy;                 /* nanoseconds of each worker in tasks */
	struct smalti_op_counter *op_counters; /* of each worker; NULL: a sequential session */
	struct smalti_device_counts device_counts;
	struct smalti_device **devices;    /* of each worker; NULL: a CPU's */
	struct smalti_meters *meters;      /* of devices; NULL: there are none */
	struct smalti_transfer *transfers; /* over each of StarPU's links */
	double *slowdown;                  /* of each worker: see rt/slowdown.h */
	double *speeds;                    /* of each worker: about how many f32 operations a second */
	double *ended;                     /* when each worker's last task ended, by smalti_now() */
	_Atomic int64_t tiles;             /* made so far */
	enum { SMALTI_TF32_OPEN, SMALTI_TF32_NO, SMALTI_TF32_YES } tf32; /* guarded by throttle.mutex */
	/* A hash of what was inserted. It is equal whenever the same tasks were inserted on the same tiles in
	 * the same order, in any process. */
	uint64_t sequence;
};

/* Opens a session without StarPU: each task runs when it is inserted, on the inserting thread. It shows the
 * cost of the runtime: graphs, kernels and order are the same, without scheduling. */
struct smalti_session *smalti_session_open_sequential(struct smalti_error *error);

/* Returns -1 with SMALTI_EINVAL in a child of the process that opened the session. */
int smalti_session_check(const struct smalti_session *session, struct smalti_error *error);

/* Put the workers to sleep, and wake them. Idle workers poll for tasks and take CPU time from measurements on
 * the calling thread. No task runs until they are woken. */
void smalti_session_sleep(const struct smalti_session *session);
void smalti_session_wake(const struct smalti_session *session);

/* Returns the number of processors that its workers may run on. */
int smalti_session_processors(const struct smalti_session *session);

/* The memory of the process besides tiles: code, libraries, compiled kernels, tasks in flight (measured: 60
 * to 140 MB; CUDA's libraries take 50 MB more). */
#ifdef SMALTI_CUDA
enum { SMALTI_PROGRAM_BYTES = 224 << 20 };
#else
enum { SMALTI_PROGRAM_BYTES = 160 << 20 };
#endif
int smalti_session_place_count(const struct smalti_session *session); /* 1 for a sequential session */
/* Writes StarPU's name of a worker ("CPU 0", "CUDA 0.0 (NVIDIA ...)"). */
enum { SMALTI_WORKER_NAME = 64 };
void smalti_session_worker_name(int worker, char name[SMALTI_WORKER_NAME]);
/* Writes "CPUs", a device's worker, or "rank 1". */
void smalti_session_place_name(const struct smalti_session *session, int place,
			       char name[SMALTI_WORKER_NAME]);
/* Adds seconds that a worker was in tasks. */
void smalti_session_add_busy(struct smalti_session *session, int worker, double seconds);
/* Adds those of a device's task: from `began` on, or from the end of the task before, since the worker
 * submits tasks ahead. Returns the seconds. For the worker's thread, when the task has ended. */
double smalti_session_device_ended(struct smalti_session *session, int worker, double began);
double smalti_session_busy(const struct smalti_session *session, int worker);
/* Tell whether a worker is slowed down, and slow it down after a task that took `seconds`. @{ */
bool smalti_session_slows(const struct smalti_session *session, int worker);
void smalti_session_slow(const struct smalti_session *session, int worker, double seconds);
/* @} */
/* Chooses once whether CUDA devices multiply f32 by their TF32 units. -1 with SMALTI_EINVAL when it was
 * chosen otherwise. */
int smalti_session_choose_tf32(struct smalti_session *session, bool tf32, struct smalti_error *error);
/* Returns a worker's device; NULL: it has none. */
struct smalti_device *smalti_session_device(const struct smalti_session *session, int worker);
int smalti_session_priority(const struct smalti_session *session, int64_t wanted); /* in the policy's range */
