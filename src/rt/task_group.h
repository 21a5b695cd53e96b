/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/moves.h"
#include "rt/wait.h"
#include "smalti/generate.h"

#include <stdatomic.h>

/* A task group is what belongs together and fails together: one request, or one model's weights. A task
 * that fails marks its task group; what is left of that task group is inserted as before, but does nothing
 * when it runs: what is inserted depends on no failure, and so on no timing. Other task groups go on. Only
 * where inserting itself fails (no memory for a task, no such tile) the task group is broken: nothing more is
 * inserted. Both are sticky, so that graphs insert tasks without a check after each. */

struct smalti_session;
struct smalti_task_group;
struct smalti_recording;
struct smalti_tile;

enum { SMALTI_MAX_NEEDS = 4 };
enum { SMALTI_ANYWHERE = -1 }; /* no place (rt/places.h) */

/* Where in the work a task is, as traces tell it. */
struct smalti_position {
	int64_t stage;
	int64_t layer, band; /* -1: of none */
};

/* What becomes of a task group's tasks. */
struct smalti_task_group_progress {
	double inserted, done; /* floating-point operations */
	double seconds;        /* that workers were in its tasks */
	double predicted;      /* the seconds of those that `compares` is about */
	double deviation;      /* by how much these were mispredicted, all together */
	int64_t left;          /* tasks inserted and not ended */
	int64_t stage;         /* the lowest whose arithmetic has not ended, of those begun */
	double elsewhere;      /* operations that other ranks execute; taken as done as these here are */
};

/* What a task group's tasks read that may be lost under them: asked about by smalti_task_group_status(). */
struct smalti_task_group_source {
	int (*check)(const void *of, struct smalti_error *error); /* -1: what was read of it does not count */
	const void *of;
	struct smalti_task_group_source *next;
};

/* Of a task group only these may be set by others, before its first task: `grain`, `compares` and
 * `keeps_to_devices`. */
struct smalti_task_group {
	struct smalti_session *session;
	int64_t number; /* of its session's, from 1 on; rt/lost.h finds it by that */
	struct smalti_task_group *next;
	struct smalti_task_group_source *sources;
	struct smalti_task_group *needs[SMALTI_MAX_NEEDS];
	int needs_count;
	int64_t priority;
	int64_t path;               /* tasks behind those that are inserted */
	int place;                  /* that they run at */
	struct smalti_tile *behind; /* that they wait for; NULL: none */
	char name[64];
	/* Whether the seconds of tasks that take 0.1 ms or more are compared with what StarPU's performance
	 * models predict, once these know them. */
	bool compares;
	bool keeps_to_devices;              /* what is too large for devices that work alone fails */
	enum smalti_grain grain;            /* how much becomes one task, where rt/task.h fuses */
	struct smalti_recording *recording; /* of rt/task.c; NULL: each operation is a task */
	struct smalti_moves moves;          /* of its tasks; the inserting thread's until it is sealed */
	atomic_bool failed, broken;
	struct smalti_mutex mutex;  /* guards what follows */
	struct smalti_position now; /* of the tasks that are inserted */
	int64_t *left;              /* tasks of each stage from 1 on that are inserted and not ended */
	int64_t stages;             /* that it has room for */
	struct smalti_condition idle;
	bool sealed;
	int64_t running; /* tasks inserted and not ended, and one more until sealed */
	struct smalti_task_group_progress progress;
	void (*done)(void *user);
	void *done_user;
	/* NULL: none. Not within, since a task group is made for every image: the C library gives out small
	 * pieces of memory at once, but tidies up all that were freed before it gives out a large one. */
	const struct smalti_error *cause;
};

/* Higher `priority` runs first. `name` labels the task group in traces. */
struct smalti_task_group *smalti_task_group_new(struct smalti_session *session, const char *name,
						int64_t priority, struct smalti_error *error);

/* From here on `task group` fails when `needed` does: a request cannot succeed with weights that failed. With
 * more than SMALTI_MAX_NEEDS it fails at once. `needed` outlives the task group's tasks. */
void smalti_task_group_needs(struct smalti_task_group *task_group, struct smalti_task_group *needed);

/* From here on, until it is dropped, the task group fails, and who needs it, when a check of the source does.
 */
void smalti_task_group_reads(struct smalti_task_group *task_group, struct smalti_task_group_source *source);
void smalti_task_group_drop_source(struct smalti_task_group *task_group,
				   const struct smalti_task_group_source *source);

/* No more tasks will be inserted; `done` (or NULL) is called once they have all ended, on a worker's
 * thread or on this one; it must not block. */
void smalti_task_group_seal(struct smalti_task_group *task_group, void (*done)(void *user), void *user);

/* Blocks until all tasks inserted so far have ended; a sealed task group's `done` may come a moment later. */
void smalti_task_group_wait(struct smalti_task_group *task_group);

/* Waits, then frees. NULL is allowed. */
void smalti_task_group_free(struct smalti_task_group *task_group);

/* Marks the task group failed with this cause unless it is already. */
void smalti_task_group_fail(struct smalti_task_group *task_group, const struct smalti_error *cause);
/* The same, but what failed here has failed because of this. */
void smalti_task_group_blame(struct smalti_task_group *task_group, const struct smalti_error *cause);
/* As smalti_task_group_fail(), and no more tasks are inserted. By the inserting thread. */
void smalti_task_group_break(struct smalti_task_group *task_group, const struct smalti_error *cause);
/* Marks it failed with SMALTI_ECANCELLED unless it is already. Safe in a signal handler. */
void smalti_task_group_cancel(struct smalti_task_group *task_group);
/* The task group, or one that it depends on, has failed. */
bool smalti_task_group_failed(const struct smalti_task_group *task_group);
/* The task group, or one that it depends on, inserts nothing more: loops over insertions may end. */
bool smalti_task_group_broken(const struct smalti_task_group *task_group);
/* 0, or -1 with the first cause. */
int smalti_task_group_status(struct smalti_task_group *task_group, struct smalti_error *error);

void smalti_task_group_progress(struct smalti_task_group *task_group,
				struct smalti_task_group_progress *progress);
/* The tasks inserted from here on are of this stage, a number that grows with the work; 0 before. What has
 * failed, or was cancelled, inserts none of them but where ranks insert the same. By the inserting thread. */
void smalti_task_group_stage(struct smalti_task_group *task_group, int64_t stage);

/* The tasks inserted from here on are of this layer and band; before, and after -1, of none. By the inserting
 * thread. */
void smalti_task_group_at(struct smalti_task_group *task_group, int64_t layer, int64_t band);

/* The longest path that is told from shorter ones. StarPU's priorities have 32 bits: so they tell 2^17
 * requests from each other. */
enum { SMALTI_LONGEST_PATH = (1 << 14) - 1 };

/* The tasks inserted from here on have about so many behind them on the longest path to the end of the task
 * group's work; 0 before. Under a policy with priorities, of the tasks that are ready those of the task group
 * with the higher priority run first, and within it those with more behind them. By the inserting thread. */
void smalti_task_group_path(struct smalti_task_group *task_group, int64_t tasks);

/* The tasks inserted from here on run at this place (rt/places.h), which owns what they make; at first, and
 * after SMALTI_ANYWHERE, where the tiles' owners say. By the inserting thread. */
void smalti_task_group_place(struct smalti_task_group *task_group, int place);

/* The tasks inserted from here on begin behind what writes this tile, and what writes it next begins behind
 * them, as if they read it, but it stays where it is; at first, and after NULL, they wait for nothing but
 * what they touch. By the inserting thread. */
void smalti_task_group_behind(struct smalti_task_group *task_group, struct smalti_tile *tile);

/* Of the task that is about to be inserted. */
int64_t smalti_task_group_priority(const struct smalti_task_group *task_group);

/* For src/rt. A task of `flops`; returns its position. */
struct smalti_position smalti_task_group_task_begins(struct smalti_task_group *task_group, double flops);
/* A task of `flops` that another rank executes. */
void smalti_task_group_task_elsewhere(struct smalti_task_group *task_group, double flops);
/* A task of the task group kept a worker for so long; NAN: nothing was predicted. */
void smalti_task_group_task_took(struct smalti_task_group *task_group, double seconds, double predicted);
/* Its arithmetic is done: before any task that waits for it can begin, so that what such a task asks is
 * right. */
void smalti_task_group_task_did(struct smalti_task_group *task_group, int64_t stage, double flops);
/* Behind all else. */
void smalti_task_group_task_ends(struct smalti_task_group *task_group);
