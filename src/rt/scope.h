/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_RT_SCOPE_H
#define SMALTI_RT_SCOPE_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* A scope is what belongs together and fails together: one request, or one model's weights. A task
 * that fails marks its scope; what is left of that scope is inserted as before, but does nothing when it
 * runs: what is inserted depends on no failure, and so on no timing. Other scopes go on. Only where inserting
 * itself fails (no memory for a task, no such tile) the scope is broken: nothing more is inserted. Both are
 * sticky, so that graphs insert tasks without a check after each. */

struct smalti_session;
struct smalti_scope;

enum { SMALTI_MAX_NEEDS = 4 };

/* Higher `priority` runs first. `name` labels the scope in traces. */
struct smalti_scope *smalti_scope_new(struct smalti_session *session, const char *name, int64_t priority,
				      struct smalti_error *error);

/* From here on `scope` fails when `needed` does: a request cannot succeed with weights that failed. With
 * more than SMALTI_MAX_NEEDS it fails at once. `needed` outlives the scope's tasks. */
void smalti_scope_needs(struct smalti_scope *scope, struct smalti_scope *needed);

/* No more tasks will be inserted; `done` (or NULL) is called once they have all ended, on a worker's
 * thread or on this one; it must not block. */
void smalti_scope_seal(struct smalti_scope *scope, void (*done)(void *user), void *user);

/* Blocks until all tasks inserted so far have ended; a sealed scope's `done` may come a moment later. */
void smalti_scope_wait(struct smalti_scope *scope);

/* The same for some `nanoseconds` at most: whether they have ended. */
bool smalti_scope_wait_for(struct smalti_scope *scope, int64_t nanoseconds);

/* Waits, then frees. NULL is allowed. */
void smalti_scope_free(struct smalti_scope *scope);

/* Marks the scope failed with this cause unless it is already. */
void smalti_scope_fail(struct smalti_scope *scope, const struct smalti_error *cause);
/* The same, and no more tasks are inserted. By the inserting thread. */
void smalti_scope_break(struct smalti_scope *scope, const struct smalti_error *cause);
/* Marks it failed with SMALTI_ECANCELLED unless it is already. Safe in a signal handler. */
void smalti_scope_cancel(struct smalti_scope *scope);
/* The scope, or one that it depends on, has failed. */
bool smalti_scope_failed(const struct smalti_scope *scope);
/* The scope, or one that it depends on, inserts nothing more: loops over insertions may end. */
bool smalti_scope_broken(const struct smalti_scope *scope);
/* 0, or -1 with the first cause. */
int smalti_scope_status(struct smalti_scope *scope, struct smalti_error *error);

/* What becomes of a scope's tasks. */
struct smalti_scope_progress {
	double inserted, done; /* floating-point operations */
	double seconds;        /* that workers were in its tasks */
	double predicted;      /* the seconds of those that smalti_scope_compare() is about */
	double deviation;      /* by how much these were mispredicted, all together */
	int64_t left;          /* tasks inserted and not ended */
	int64_t stage;         /* the lowest whose arithmetic has not ended, of those begun */
};
void smalti_scope_progress(struct smalti_scope *scope, struct smalti_scope_progress *progress);
/* The tasks inserted from here on are of this stage, a number that grows with the work; 0 before. By the
 * inserting thread. */
void smalti_scope_stage(struct smalti_scope *scope, int64_t stage);

/* Before the first task: compares the seconds of tasks that take 0.1 ms or more with what StarPU's
 * performance models predict, once these know them. */
void smalti_scope_compare(struct smalti_scope *scope);

/* Where in the work a task is, as traces tell it. */
struct smalti_place {
	int64_t stage;
	int64_t layer, band; /* -1: of none */
};
/* The tasks inserted from here on are of this layer and band; before, and after -1, of none. By the inserting
 * thread. */
void smalti_scope_at(struct smalti_scope *scope, int64_t layer, int64_t band);

const char *smalti_scope_name(const struct smalti_scope *scope);
struct smalti_session *smalti_scope_session(const struct smalti_scope *scope);
int64_t smalti_scope_priority(const struct smalti_scope *scope);

/* For src/rt. A task of `flops`; returns its place. */
struct smalti_place smalti_scope_task_begins(struct smalti_scope *scope, double flops);
bool smalti_scope_compares(const struct smalti_scope *scope);
/* A task of the scope kept a worker for so long; NAN: nothing was predicted. */
void smalti_scope_task_took(struct smalti_scope *scope, double seconds, double predicted);
void smalti_scope_task_ends(struct smalti_scope *scope, int64_t stage, double flops);

#endif
