/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/scope.h"

#include "base/alloc.h"
#include "rt/session.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NAME_LENGTH = 64 };

struct smalti_scope {
	struct smalti_session *session;
	struct smalti_scope *needs[SMALTI_MAX_NEEDS];
	int needs_count;
	int64_t priority;
	char name[NAME_LENGTH];
	bool compares;
	atomic_bool failed, broken;
	pthread_mutex_t mutex;   /* guards what follows */
	struct smalti_place now; /* of the tasks that are inserted */
	int64_t *left;           /* tasks of each stage from 1 on that are inserted and not ended */
	int64_t stages;          /* that it has room for */
	pthread_cond_t idle;
	bool sealed;
	int64_t running; /* tasks inserted and not ended, and one more until sealed */
	struct smalti_scope_progress progress;
	void (*done)(void *user);
	void *done_user;
	/* NULL: none. Not within, since a scope is made for every picture: the C library gives out small
	 * pieces of memory at once, but tidies up all that were freed before it gives out a large one. */
	const struct smalti_error *cause;
};

static const struct smalti_error no_memory = {SMALTI_ENOMEM, "no memory to say what failed"};

struct smalti_scope *smalti_scope_new(struct smalti_session *session, const char *name, int64_t priority,
				      struct smalti_error *error)
{
	if (smalti_session_check(session, error) < 0)
		return NULL;
	struct smalti_scope *scope = smalti_calloc(1, sizeof(*scope), error);
	if (!scope)
		return NULL;
	scope->session = session;
	scope->priority = priority;
	scope->running = 1;
	scope->now = (struct smalti_place){.layer = -1, .band = -1};
	snprintf(scope->name, sizeof(scope->name), "%s", name);
	pthread_mutex_init(&scope->mutex, NULL);
	pthread_cond_init(&scope->idle, NULL);
	return scope;
}

void smalti_scope_needs(struct smalti_scope *scope, struct smalti_scope *needed)
{
	if (scope->needs_count < SMALTI_MAX_NEEDS) {
		scope->needs[scope->needs_count++] = needed;
		return;
	}
	struct smalti_error error;
	smalti_fail(&error, SMALTI_EINVAL, "'%s' needs more than %d others", scope->name, SMALTI_MAX_NEEDS);
	smalti_scope_fail(scope, &error);
}

/* Those of no stage, and those without arithmetic, say nothing of how far the work is. */
static bool counts(int64_t stage, double flops)
{
	return stage > 0 && flops > 0;
}

struct smalti_place smalti_scope_task_begins(struct smalti_scope *scope, double flops)
{
	pthread_mutex_lock(&scope->mutex);
	const struct smalti_place place = scope->now;
	scope->running++;
	scope->progress.left++;
	scope->progress.inserted += flops;
	if (counts(place.stage, flops))
		scope->left[place.stage]++;
	pthread_mutex_unlock(&scope->mutex);
	return place;
}

/* Unlocks the mutex. */
static void one_less(struct smalti_scope *scope)
{
	bool last = --scope->running == 0;
	void (*done)(void *user) = last ? scope->done : NULL;
	void *user = scope->done_user;
	if (scope->running <= 1)
		pthread_cond_broadcast(&scope->idle);
	pthread_mutex_unlock(&scope->mutex);
	if (done)
		done(user); /* may free the scope */
}

void smalti_scope_compare(struct smalti_scope *scope)
{
	scope->compares = true;
}

bool smalti_scope_compares(const struct smalti_scope *scope)
{
	return scope->compares;
}

void smalti_scope_task_took(struct smalti_scope *scope, double seconds, double predicted)
{
	static const double shortest = 1e-4; /* of the tasks whose predictions count */
	pthread_mutex_lock(&scope->mutex);
	scope->progress.seconds += seconds;
	if (seconds >= shortest && !isnan(predicted)) {
		scope->progress.predicted += seconds;
		scope->progress.deviation += fabs(seconds - predicted);
	}
	pthread_mutex_unlock(&scope->mutex);
}

void smalti_scope_task_ends(struct smalti_scope *scope, int64_t stage, double flops)
{
	pthread_mutex_lock(&scope->mutex);
	struct smalti_scope_progress *progress = &scope->progress;
	progress->left--;
	progress->done += flops;
	if (counts(stage, flops))
		scope->left[stage]--;
	/* tasks that wait for nothing of their stage run ahead: the stage is over with its last task only */
	while (progress->stage < scope->now.stage && scope->left[progress->stage] == 0)
		progress->stage++;
	one_less(scope);
}

void smalti_scope_progress(struct smalti_scope *scope, struct smalti_scope_progress *progress)
{
	pthread_mutex_lock(&scope->mutex);
	*progress = scope->progress;
	pthread_mutex_unlock(&scope->mutex);
}

/* Under the mutex. */
static int make_room(struct smalti_scope *scope, int64_t stage, struct smalti_error *error)
{
	if (stage < scope->stages)
		return 0;
	int64_t *left = smalti_calloc(2 * (stage + 1), sizeof(*left), error);
	if (!left)
		return -1;
	if (scope->stages)
		memcpy(left, scope->left, (size_t)scope->stages * sizeof(*left));
	free(scope->left);
	scope->left = left;
	scope->stages = 2 * (stage + 1);
	return 0;
}

void smalti_scope_stage(struct smalti_scope *scope, int64_t stage)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	pthread_mutex_lock(&scope->mutex);
	const int status = make_room(scope, stage, &error);
	if (status == 0)
		scope->now.stage = stage;
	pthread_mutex_unlock(&scope->mutex);
	if (status < 0)
		smalti_scope_fail(scope, &error);
}

void smalti_scope_at(struct smalti_scope *scope, int64_t layer, int64_t band)
{
	pthread_mutex_lock(&scope->mutex);
	scope->now.layer = layer;
	scope->now.band = band;
	pthread_mutex_unlock(&scope->mutex);
}

void smalti_scope_seal(struct smalti_scope *scope, void (*done)(void *user), void *user)
{
	pthread_mutex_lock(&scope->mutex);
	scope->sealed = true;
	scope->done = done;
	scope->done_user = user;
	one_less(scope);
}

/* Under the mutex. */
static bool is_idle(const struct smalti_scope *scope)
{
	return scope->running <= (scope->sealed ? 0 : 1);
}

void smalti_scope_wait(struct smalti_scope *scope)
{
	pthread_mutex_lock(&scope->mutex);
	while (!is_idle(scope))
		pthread_cond_wait(&scope->idle, &scope->mutex);
	pthread_mutex_unlock(&scope->mutex);
}

bool smalti_scope_wait_for(struct smalti_scope *scope, int64_t nanoseconds)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += (until.tv_nsec + nanoseconds) / 1000000000;
	until.tv_nsec = (until.tv_nsec + nanoseconds) % 1000000000;
	pthread_mutex_lock(&scope->mutex);
	int status = 0;
	while (!is_idle(scope) && status == 0)
		status = pthread_cond_timedwait(&scope->idle, &scope->mutex, &until);
	const bool idle = is_idle(scope);
	pthread_mutex_unlock(&scope->mutex);
	return idle;
}

void smalti_scope_free(struct smalti_scope *scope)
{
	if (!scope)
		return;
	smalti_scope_wait(scope);
	free(scope->left);
	if (scope->cause != &no_memory)
		free((void *)scope->cause);
	pthread_cond_destroy(&scope->idle);
	pthread_mutex_destroy(&scope->mutex);
	free(scope);
}

void smalti_scope_fail(struct smalti_scope *scope, const struct smalti_error *cause)
{
	pthread_mutex_lock(&scope->mutex);
	if (!scope->cause) {
		struct smalti_error *kept = malloc(sizeof(*kept));
		if (kept)
			*kept = *cause;
		scope->cause = kept ? kept : &no_memory;
	}
	pthread_mutex_unlock(&scope->mutex);
	atomic_store(&scope->failed, true);
}

void smalti_scope_break(struct smalti_scope *scope, const struct smalti_error *cause)
{
	smalti_scope_fail(scope, cause);
	atomic_store(&scope->broken, true);
}

/* A failure without a cause is a cancellation: a handler can set a flag, but not lock. */
void smalti_scope_cancel(struct smalti_scope *scope)
{
	atomic_store(&scope->failed, true);
}

bool smalti_scope_failed(const struct smalti_scope *scope)
{
	if (atomic_load(&scope->failed))
		return true;
	for (int i = 0; i < scope->needs_count; i++)
		if (smalti_scope_failed(scope->needs[i]))
			return true;
	return false;
}

bool smalti_scope_broken(const struct smalti_scope *scope)
{
	if (atomic_load(&scope->broken))
		return true;
	for (int i = 0; i < scope->needs_count; i++)
		if (smalti_scope_broken(scope->needs[i]))
			return true;
	return false;
}

int smalti_scope_status(struct smalti_scope *scope, struct smalti_error *error)
{
	int status = 0;
	if (atomic_load(&scope->failed)) {
		pthread_mutex_lock(&scope->mutex);
		status = scope->cause ? smalti_fail(error, scope->cause->code, "%s", scope->cause->message)
				      : smalti_fail(error, SMALTI_ECANCELLED, "cancelled");
		pthread_mutex_unlock(&scope->mutex);
	}
	for (int i = 0; i < scope->needs_count && status == 0; i++)
		status = smalti_scope_status(scope->needs[i], error);
	return status;
}

const char *smalti_scope_name(const struct smalti_scope *scope)
{
	return scope->name;
}

struct smalti_session *smalti_scope_session(const struct smalti_scope *scope)
{
	return scope->session;
}

int64_t smalti_scope_priority(const struct smalti_scope *scope)
{
	return scope->priority;
}
