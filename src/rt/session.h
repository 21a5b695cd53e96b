/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/device.h"
#include "rt/lost.h"
#include "rt/machine.h"
#include "rt/observer.h"
#include "rt/perf_directory.h"
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

/* What is not said to change is set when it is opened. */
struct smalti_session {
	struct smalti_perf_directory directory;
	struct smalti_machine_cpus cpus;
	int workers;
	int planned_workers;  /* of the rank that has the fewest, which plans go by */
	int64_t memory_limit; /* 0: none */
	int64_t memory; /* bytes that each rank's process may hold: the limit, else smalti_machine_memory() */
	pid_t process;
	bool offloads;       /* data that does not fit under the limit goes to the scratch directory */
	bool inserts_failed; /* what has failed is inserted to its end: ranks all insert the same tasks */
	bool plain;          /* without StarPU: see smalti_session_open_plain() */
	bool reproducible;   /* with devices: see rt/reproducible.h */
	bool devices_alone;  /* see rt/devices_alone.h */
	int64_t task_bytes;  /* that a task's tiles may take on every device; without devices INT64_MAX */
	int lowest_priority, highest_priority;
	struct smalti_counting *counting; /* of rt/counting.h; NULL: tasks run */
	struct smalti_observer observers[SMALTI_OBSERVERS];
	int observer_count;
	struct smalti_trace *trace;            /* NULL: not traced */
	struct smalti_recent *recent;          /* NULL: nobody watches */
	struct smalti_codelet *codelets;       /* one per op, in the order of smalti_ops[] */
	struct smalti_places *places;          /* where it computes; a plain session has none */
	struct smalti_place_facts *rank_facts; /* of rt/rank_facts.h; NULL: not gathered */
	struct smalti_pool *pool;              /* where its tiles lie in main memory */
	struct smalti_throttle throttle;
	struct smalti_lost lost;
	_Atomic int64_t *busy;                 /* nanoseconds of each worker in tasks */
	struct smalti_op_counter *op_counters; /* of each worker; NULL: a plain session */
	struct smalti_device_counts device_counts;
	struct smalti_device **devices;    /* of each worker; NULL: a CPU's */
	struct smalti_meters *meters;      /* what devices do; NULL: there are none */
	struct smalti_transfer *transfers; /* what went over each of StarPU's links */
	double *slowdown;                  /* of each worker: see rt/slowdown.h */
	double *speeds;                    /* of each worker: f32 operations a second, about */
	double *ended;                     /* when each worker's last task has, by smalti_now() */
	_Atomic int64_t tiles;             /* made so far */
	enum { SMALTI_TF32_OPEN, SMALTI_TF32_NO, SMALTI_TF32_YES } tf32; /* guarded by throttle.mutex */
	/* A hash of what was inserted: the same whenever the same tasks were inserted on the same tiles in
	 * the same order, in whatever process. */
	uint64_t sequence;
};

/* A session without StarPU: each task runs when it is inserted, on the inserting thread. It shows what the
 * runtime costs: the same graphs, kernels and order, and nothing between them. */
struct smalti_session *smalti_session_open_plain(struct smalti_error *error);

/* -1 with SMALTI_EINVAL in a child of the process that opened it. */
int smalti_session_check(const struct smalti_session *session, struct smalti_error *error);

/* Workers look for tasks even when there are none, and take the CPU from whoever measures something on the
 * calling thread: so put them to sleep meanwhile. No task runs until they are woken. */
void smalti_session_sleep(const struct smalti_session *session);
void smalti_session_wake(const struct smalti_session *session);

/* The processors that its workers may run on. */
int smalti_session_processors(const struct smalti_session *session);

/* What the process holds besides tiles: code, libraries, compiled kernels, tasks in flight (measured: 60 to
 * 140 MB; CUDA's libraries take 50 MB more). */
#ifdef SMALTI_CUDA
enum { SMALTI_PROGRAM_BYTES = 224 << 20 };
#else
enum { SMALTI_PROGRAM_BYTES = 160 << 20 };
#endif
int smalti_session_place_count(const struct smalti_session *session); /* a plain session's: 1 */
/* What StarPU calls a worker ("CPU 0", "CUDA 0.0 (NVIDIA ...)"). */
enum { SMALTI_WORKER_NAME = 64 };
void smalti_session_worker_name(int worker, char name[SMALTI_WORKER_NAME]);
/* "CPUs", a device's worker, or "rank 1". */
void smalti_session_place_name(const struct smalti_session *session, int place,
			       char name[SMALTI_WORKER_NAME]);
/* Seconds that a worker has been in tasks. */
void smalti_session_add_busy(struct smalti_session *session, int worker, double seconds);
/* The same for a task of a device, whose worker gives it the next one before: from `began` on, or from when
 * the task before has ended. Returns the seconds. For the worker's thread, when the task has ended. */
double smalti_session_device_ended(struct smalti_session *session, int worker, double began);
double smalti_session_busy(const struct smalti_session *session, int worker);
/* Whether a worker is slowed down, and that, behind a task that took so long. @{ */
bool smalti_session_slows(const struct smalti_session *session, int worker);
void smalti_session_slow(const struct smalti_session *session, int worker, double seconds);
/* @} */
/* Whether CUDA devices multiply f32 by their TF32 units: once for all. -1 with SMALTI_EINVAL when it was
 * chosen otherwise. */
int smalti_session_choose_tf32(struct smalti_session *session, bool tf32, struct smalti_error *error);
/* A worker's; NULL: it has none. */
struct smalti_device *smalti_session_device(const struct smalti_session *session, int worker);
int smalti_session_priority(const struct smalti_session *session, int64_t wanted); /* to the policy's range */
