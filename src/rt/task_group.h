/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "host/wait.h"
#include "rt/task_transfers.h"
#include "smalti/generate.h"

#include <stdatomic.h>

/* Tasks that belong together and fail together: one request, or one model's weights. A task that fails marks
 * its group. The group's other tasks are inserted as before, but do nothing when they run: so insertion
 * depends on no failure, and on no timing. Other groups continue. Only if insertion itself fails (no memory
 * for a task, no such tile) the group is broken: nothing more is inserted. Both states stay, so that graphs
 * insert tasks without a check after each. */

struct smalti_session;
struct smalti_task_group;
struct smalti_recording;
struct smalti_tile;

enum { SMALTI_MAX_DEPENDENCIES = 4 };
enum { SMALTI_ANYWHERE = -1 }; /* no place (rt/places.h) */

/* The position of a task in the work, as traces show it. */
struct smalti_position {
	int64_t stage;
	int64_t layer, band; /* -1: none */
};

/* The progress of a task group. */
struct smalti_task_group_progress {
	double inserted, done; /* floating-point operations */
	double seconds;        /* of workers in its tasks */
	double predicted;      /* the measured seconds of the tasks that `compares` selects */
	double deviation;      /* the sum of the absolute errors of their predictions */
	int64_t left;          /* tasks inserted and not ended */
	int64_t stage;         /* the lowest stage that has begun and whose arithmetic has not ended */
	double elsewhere;      /* operations that other ranks execute; they count as done like those here */
};

/* A source that a task group's tasks read and that may be lost meanwhile. smalti_task_group_status() checks
 * it. */
struct smalti_task_group_source {
	int (*check)(const void *of, struct smalti_error *error); /* -1: what was read of it is invalid */
	const void *of;
	struct smalti_task_group_source *next;
};

/* A task group. Other code may set only `grain`, `compares` and `keeps_to_devices`, before its first task. */
struct smalti_task_group {
	struct smalti_session *session;
	int64_t number; /* in its session, from 1 on; rt/lost.h finds the group by it */
	struct smalti_task_group *next;
	struct smalti_task_group_source *sources;
	struct smalti_task_group *dependencies[SMALTI_MAX_DEPENDENCIES];
	int dependency_count;
	int64_t priority;
	int64_t bottom_level;       /* tasks behind those that are inserted */
	int place;                  /* where they run */
	struct smalti_tile *behind; /* what they wait for; NULL: nothing */
	char name[64];
	/* Compares the seconds of tasks that take 0.1 ms or more with StarPU's performance models, once these
	 * have measured them. */
	bool compares;
	bool keeps_to_devices;              /* a task that is too large for devices that work alone fails */
	enum smalti_grain grain;            /* how many operations become one task, where rt/task.h fuses */
	struct smalti_recording *recording; /* rt/recording.h; NULL: each operation is a task */
	struct smalti_task_transfers transfers; /* for the inserting thread until it is closed */
	atomic_bool failed, broken;
	struct smalti_mutex mutex;  /* guards what follows */
	struct smalti_position now; /* of the tasks that are inserted */
	int64_t *left;              /* of each stage from 1 on: tasks inserted and not ended */
	int64_t stages;             /* length of `left` */
	struct smalti_condition idle;
	bool closed;
	int64_t running; /* tasks inserted and not ended, and one more until closed */
	struct smalti_task_group_progress progress;
	void (*done)(void *user);
	void *done_user;
	/* NULL: none. Allocated, to keep the struct small, since a task group is made for every image: the C
	 * library gives out small blocks at once, but consolidates all freed ones before it gives out a large
	 * one. */
	const struct smalti_error *cause;
};

/* Makes a task group. Higher `priority` runs first. `name` labels it in traces. */
struct smalti_task_group *smalti_task_group_new(struct smalti_session *session, const char *name,
						int64_t priority, struct smalti_error *error);

/* Has `task_group` fail when `dependency` does, from here on: a request cannot succeed with weights that
 * failed. With more than SMALTI_MAX_DEPENDENCIES it fails at once. `dependency` must outlive the task group's
 * tasks. */
void smalti_task_group_depends_on(struct smalti_task_group *task_group, struct smalti_task_group *dependency);

/* Has the task group, and groups that depend on it, fail when a check of the source does, from here on until
 * the source is dropped. */
void smalti_task_group_reads(struct smalti_task_group *task_group, struct smalti_task_group_source *source);
void smalti_task_group_drop_source(struct smalti_task_group *task_group,
				   const struct smalti_task_group_source *source);

/* Ends the insertion of tasks. `done` (or NULL) is called once all have ended, on a worker's thread or on
 * this one; it must not block. */
void smalti_task_group_close(struct smalti_task_group *task_group, void (*done)(void *user), void *user);

/* Blocks until all tasks inserted so far have ended; a closed task group's `done` may come a moment later. */
void smalti_task_group_wait(struct smalti_task_group *task_group);

/* Waits, then frees. NULL is allowed. */
void smalti_task_group_free(struct smalti_task_group *task_group);

/* Marks the task group failed with this cause unless it is already. */
void smalti_task_group_fail(struct smalti_task_group *task_group, const struct smalti_error *cause);
/* Fails with this cause in place of any other: what failed here failed because of it. */
void smalti_task_group_fail_because(struct smalti_task_group *task_group, const struct smalti_error *cause);
/* Fails as smalti_task_group_fail() does, and inserts no more tasks. The inserting thread calls it. */
void smalti_task_group_break(struct smalti_task_group *task_group, const struct smalti_error *cause);
/* Allocates as smalti_calloc() does; NULL, with the task group broken, without memory. */
void *smalti_task_group_calloc(struct smalti_task_group *task_group, int64_t count, int64_t size);
/* Marks it failed with SMALTI_ECANCELLED unless it is already. Safe in a signal handler. */
void smalti_task_group_cancel(struct smalti_task_group *task_group);
/* Tells whether the task group, or one that it depends on, has failed. */
bool smalti_task_group_failed(const struct smalti_task_group *task_group);
/* Tells whether the task group, or one that it depends on, inserts nothing more: loops over insertions may
 * end. */
bool smalti_task_group_broken(const struct smalti_task_group *task_group);
/* Returns 0, or -1 with the first cause. */
int smalti_task_group_status(struct smalti_task_group *task_group, struct smalti_error *error);

void smalti_task_group_progress(struct smalti_task_group *task_group,
				struct smalti_task_group_progress *progress);
/* Sets the stage of the tasks inserted from here on, a number that grows with the work; 0 before. A failed or
 * cancelled group inserts no more tasks, unless ranks must insert the same ones. The inserting thread calls
 * it. */
void smalti_task_group_stage(struct smalti_task_group *task_group, int64_t stage);

/* Sets the layer and band of the tasks inserted from here on; before, and after -1, none. The inserting
 * thread calls it. */
void smalti_task_group_at(struct smalti_task_group *task_group, int64_t layer, int64_t band);

/* The highest bottom level that is distinguished. StarPU's priorities have 32 bits: so they distinguish 2^17
 * requests. */
enum { SMALTI_MAX_BOTTOM_LEVEL = (1 << 14) - 1 };

/* Sets the bottom level of the tasks inserted from here on: about how many tasks are behind them, on the
 * longest path to the end of the group's work; 0 before. Under a policy with priorities, ready tasks of the
 * group with the higher priority run first, and within a group those with the higher bottom level. The
 * inserting thread calls it. */
void smalti_task_group_bottom_level(struct smalti_task_group *task_group, int64_t tasks);

/* Sets the place (rt/places.h) where the tasks inserted from here on run, and which owns what they make; at
 * first, and after SMALTI_ANYWHERE, the tiles' owners decide. The inserting thread calls it. */
void smalti_task_group_place(struct smalti_task_group *task_group, int place);

/* Has the tasks inserted from here on wait for the writer of this tile, and its next writer wait for them, as
 * if they read it; but the tile stays where it is. At first, and after NULL, tasks wait only for what they
 * access. The inserting thread calls it. */
void smalti_task_group_behind(struct smalti_task_group *task_group, struct smalti_tile *tile);

/* Returns the priority of the next inserted task. */
int64_t smalti_task_group_priority(const struct smalti_task_group *task_group);

/* Begins a task of `flops`; returns its position. Only src/rt calls what follows. */
struct smalti_position smalti_task_group_task_begins(struct smalti_task_group *task_group, double flops);
/* Counts a task of `flops` that another rank executes. */
void smalti_task_group_task_elsewhere(struct smalti_task_group *task_group, double flops);
/* Counts the seconds that a task kept a worker; `predicted` is NAN without a prediction. */
void smalti_task_group_task_took(struct smalti_task_group *task_group, double seconds, double predicted);
/* Counts arithmetic as done before any task that waits for it can begin, so that such a task sees the right
 * progress. */
void smalti_task_group_task_did(struct smalti_task_group *task_group, int64_t stage, double flops);
/* Ends a task, after all else. */
void smalti_task_group_task_ends(struct smalti_task_group *task_group);
