/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <cjson/cJSON.h>

/* A schedule: a run as a trace (`smalti generate --trace`, `smalti simulate --trace`) records it, and what
 * follows from it. */

/* Why workers had no task. */
enum smalti_idle {
	SMALTI_IDLE_START,  /* before their first task */
	SMALTI_IDLE_DATA,   /* a task waited for its data */
	SMALTI_IDLE_NONE,   /* no task was ready */
	SMALTI_IDLE_OTHERS, /* tasks were ready, but went to others */
	SMALTI_IDLE_END,    /* after their last task */
	SMALTI_IDLE_CAUSES
};
extern const char *const smalti_idle_names[SMALTI_IDLE_CAUSES];

enum { SMALTI_SCHEDULE_WORKERS = 256 }; /* a schedule's at most; and its places */

/* Times are seconds from the first task's readiness. */
struct smalti_schedule_task {
	const char *name;
	int worker;
	int64_t image; /* its image; -1: several */
	double submitted, ready, start, end, flops;
	double fetch_start, fetch_end; /* while it waited for data, before its start; equal: not at all */
	int64_t *after;                /* the tasks that it waited for */
	int64_t after_count;
	int64_t *reads, *writes; /* tiles; none are known where there is one place */
	int64_t read_count, write_count;
};

/* A link from place to place, as StarPU measured it. */
struct smalti_schedule_link {
	double rate, delay; /* bytes a second, and seconds; a rate of 0: there is none */
};

struct smalti_schedule_worker {
	char *name;
	int place;
	double busy, idle[SMALTI_IDLE_CAUSES];
};

struct smalti_task_schedule {
	struct smalti_schedule_task
	    *tasks; /* in the order of insertion: each follows those that it waits for */
	int64_t count;
	struct smalti_schedule_worker *workers;
	int worker_count;
	int64_t *place_workers; /* of each place */
	int places;
	double *costs; /* of each task at each place: as it took where it ran, else as was expected; INFINITY:
			  it has no form */
	double *weights;  /* bytes that each task needs, where several read the same tile its part */
	double *expected; /* of each task where it ran; NAN: nothing */
	double *tiles;    /* bytes of each */
	bool *made;       /* by a task, each of them; the others are weights, in main memory at first */
	int64_t tile_count;
	struct smalti_schedule_link *links; /* from each place to each place */
	double host;                        /* bytes a second that cross main memory in all; NAN: unknown */
	int64_t bytes;                      /* that went from memory to memory */
	/* Lower bounds of any schedule, except the first; NAN: too many tasks for linear, unknown for
	 * transfers, which only a simulation's trace has. */
	double makespan, area, path, linear, transfers;
	/* From the beginning, when all images were submitted, to the end of each image's last task. */
	double latency_median, latency_95, latency_max;
	double queue; /* tasks that were ready and not begun, on average */
	cJSON *trace;
};

/* Reads the trace. NULL with SMALTI_EIO or SMALTI_EFORMAT. */
struct smalti_task_schedule *smalti_schedule_read(const char *path, struct smalti_error *error);
void smalti_schedule_free(struct smalti_task_schedule *schedule);

/* schedule_moves.c: reads the tiles and the links, and a task's tiles. */
int smalti_schedule_read_tiles(struct smalti_task_schedule *schedule, struct smalti_error *error);
int smalti_schedule_read_uses(const struct smalti_task_schedule *schedule, struct smalti_schedule_task *task,
			      const cJSON *arguments, struct smalti_error *error);
/* Finds which tiles are made, and the weights. */
int smalti_schedule_find_weights(struct smalti_task_schedule *schedule, struct smalti_error *error);
/* Returns the bytes a second of weights that a place can receive; of all devices together for place 0. */
double smalti_schedule_weights_rate(const struct smalti_task_schedule *schedule, int place);

/* schedule_idle.c: fills makespan, busy, idle, queue and latencies. */
int smalti_schedule_measure(struct smalti_task_schedule *schedule, struct smalti_error *error);
/* Counts the tasks that were ready and not begun, at `count` evenly spaced moments. */
void smalti_schedule_queue(const struct smalti_task_schedule *schedule, int64_t *waiting, int count);

/* schedule_bounds.c: fills area, path and linear. */
int smalti_schedule_bound(struct smalti_task_schedule *schedule, struct smalti_error *error);
/* Returns a task's cost at the place where it is fastest. */
double smalti_schedule_min_cost(const struct smalti_task_schedule *schedule, int64_t task);

/* The error of the performance models for tasks of a name. */
struct smalti_schedule_op {
	const char *name;
	int64_t count;
	double seconds, deviation; /* of those with an expected time */
};
enum { SMALTI_SCHEDULE_OPS = 128 };
/* Lists the longest first; returns how many. */
int smalti_schedule_ops(const struct smalti_task_schedule *schedule,
			struct smalti_schedule_op ops[SMALTI_SCHEDULE_OPS]);
