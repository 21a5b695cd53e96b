/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/task_group.h"
#include "ranks/ranks.h"
#include "rt/counting.h"
#include "rt/session.h"

#include <math.h>
#include <stdatomic.h>

static const struct smalti_error no_memory = {SMALTI_ENOMEM, "no memory to say what failed"};

struct smalti_task_group *smalti_task_group_new(struct smalti_session *session, const char *name,
						int64_t priority, struct smalti_error *error)
{
	if (smalti_session_check(session, error) < 0)
		return NULL;
	struct smalti_task_group *task_group = smalti_calloc(1, sizeof(*task_group), error);
	if (!task_group)
		return NULL;
	task_group->session = session;
	task_group->priority = priority;
	task_group->running = 1;
	task_group->place = SMALTI_ANYWHERE;
	task_group->now = (struct smalti_position){.layer = -1, .band = -1};
	snprintf(task_group->name, sizeof(task_group->name), "%s", name);
	smalti_mutex_open(&task_group->mutex);
	smalti_condition_open(&task_group->idle);
	smalti_lost_add(&session->lost, task_group);
	return task_group;
}

void smalti_task_group_depends_on(struct smalti_task_group *task_group, struct smalti_task_group *dependency)
{
	if (task_group->dependency_count < SMALTI_MAX_DEPENDENCIES) {
		task_group->dependencies[task_group->dependency_count++] = dependency;
		return;
	}
	struct smalti_error error;
	smalti_fail(&error, SMALTI_EINVAL, "'%s' needs more than %d others", task_group->name,
		    SMALTI_MAX_DEPENDENCIES);
	smalti_task_group_fail(task_group, &error);
}

void smalti_task_group_reads(struct smalti_task_group *task_group, struct smalti_task_group_source *source)
{
	HOLD(&task_group->mutex);
	source->next = task_group->sources;
	task_group->sources = source;
}

void smalti_task_group_drop_source(struct smalti_task_group *task_group,
				   const struct smalti_task_group_source *source)
{
	HOLD(&task_group->mutex);
	struct smalti_task_group_source **at = &task_group->sources;
	while (*at && *at != source)
		at = &(*at)->next;
	if (*at)
		*at = source->next;
}

/* Tells whether a task shows the progress of the work: it has a stage and arithmetic. */
static bool counts(int64_t stage, double flops)
{
	return stage > 0 && flops > 0;
}

struct smalti_position smalti_task_group_task_begins(struct smalti_task_group *task_group, double flops)
{
	HOLD(&task_group->mutex);
	task_group->running++;
	task_group->progress.left++;
	task_group->progress.inserted += flops;
	if (counts(task_group->now.stage, flops))
		task_group->left[task_group->now.stage]++;
	return task_group->now;
}

/* Counts one task less, and unlocks the mutex. */
static void one_less(struct smalti_task_group *task_group)
{
	bool last = --task_group->running == 0;
	void (*done)(void *user) = last ? task_group->done : NULL;
	void *user = task_group->done_user;
	if (task_group->running <= 1)
		smalti_condition_broadcast(&task_group->idle);
	smalti_mutex_unlock(&task_group->mutex);
	if (done)
		done(user); /* may free the task group */
}

void smalti_task_group_task_took(struct smalti_task_group *task_group, double seconds, double predicted)
{
	static const double shortest = 1e-4; /* tasks whose predictions count */
	HOLD(&task_group->mutex);
	task_group->progress.seconds += seconds;
	if (seconds >= shortest && !isnan(predicted)) {
		task_group->progress.predicted += seconds;
		task_group->progress.deviation += fabs(seconds - predicted);
	}
}

void smalti_task_group_task_did(struct smalti_task_group *task_group, int64_t stage, double flops)
{
	HOLD(&task_group->mutex);
	struct smalti_task_group_progress *progress = &task_group->progress;
	progress->done += flops;
	if (counts(stage, flops))
		task_group->left[stage]--;
	/* tasks that wait for nothing of their stage run ahead: a stage is over only with its last task */
	while (progress->stage < task_group->now.stage && task_group->left[progress->stage] == 0)
		progress->stage++;
}

void smalti_task_group_task_ends(struct smalti_task_group *task_group)
{
	smalti_mutex_lock(&task_group->mutex);
	task_group->progress.left--;
	one_less(task_group);
}

void smalti_task_group_progress(struct smalti_task_group *task_group,
				struct smalti_task_group_progress *progress)
{
	HOLD(&task_group->mutex);
	*progress = task_group->progress;
	if (progress->inserted > 0) {
		const double all = 1 + progress->elsewhere / progress->inserted;
		progress->inserted *= all;
		progress->done *= all;
	}
}

void smalti_task_group_task_elsewhere(struct smalti_task_group *task_group, double flops)
{
	HOLD(&task_group->mutex);
	task_group->progress.elsewhere += flops;
}

void smalti_task_group_stage(struct smalti_task_group *task_group, int64_t stage)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_mutex_lock(&task_group->mutex);
	const int status =
	    smalti_grow_to(&task_group->left, &task_group->stages, stage, sizeof(*task_group->left), &error);
	if (status == 0)
		task_group->now.stage = stage;
	smalti_mutex_unlock(&task_group->mutex);
	if (status < 0)
		smalti_task_group_fail(task_group, &error);
	if (!task_group->session->inserts_failed && smalti_task_group_failed(task_group))
		atomic_store(&task_group->broken, true);
}

void smalti_task_group_at(struct smalti_task_group *task_group, int64_t layer, int64_t band)
{
	HOLD(&task_group->mutex);
	task_group->now.layer = layer;
	task_group->now.band = band;
	if (task_group->session->counting && layer >= 0)
		task_group->session->counting->layer++;
}

void smalti_task_group_close(struct smalti_task_group *task_group, void (*done)(void *user), void *user)
{
	smalti_mutex_lock(&task_group->mutex);
	task_group->closed = true;
	task_group->done = done;
	task_group->done_user = user;
	one_less(task_group);
}

/* Tells whether no task is left, under the mutex. */
static bool is_idle(const struct smalti_task_group *task_group)
{
	return task_group->running <= (task_group->closed ? 0 : 1);
}

void smalti_task_group_wait(struct smalti_task_group *task_group)
{
	HOLD(&task_group->mutex);
	while (!is_idle(task_group))
		smalti_condition_wait(&task_group->idle, &task_group->mutex);
}

/* Keeps a copy, under the mutex. */
static void keep_cause(struct smalti_task_group *task_group, const struct smalti_error *cause)
{
	struct smalti_error *kept = malloc(sizeof(*kept));
	if (kept)
		*kept = *cause;
	task_group->cause = kept ? kept : &no_memory;
	atomic_store(&task_group->failed, true);
}

static void drop_cause(struct smalti_task_group *task_group)
{
	if (task_group->cause != &no_memory)
		free((void *)task_group->cause);
	task_group->cause = NULL;
}

void smalti_task_group_free(struct smalti_task_group *task_group)
{
	if (!task_group)
		return;
	smalti_task_group_wait(task_group);
	smalti_lost_remove(&task_group->session->lost, task_group);
	smalti_observe(task_group->session, leaves, task_group);
	smalti_task_transfers_free(&task_group->transfers);
	free(task_group->left);
	drop_cause(task_group);
	smalti_condition_close(&task_group->idle);
	smalti_mutex_close(&task_group->mutex);
	free(task_group);
}

void smalti_task_group_fail(struct smalti_task_group *task_group, const struct smalti_error *cause)
{
	HOLD(&task_group->mutex);
	if (!task_group->cause)
		keep_cause(task_group, cause);
	atomic_store(&task_group->failed, true);
}

void smalti_task_group_fail_because(struct smalti_task_group *task_group, const struct smalti_error *cause)
{
	HOLD(&task_group->mutex);
	drop_cause(task_group);
	keep_cause(task_group, cause);
}

void smalti_task_group_break(struct smalti_task_group *task_group, const struct smalti_error *cause)
{
	smalti_task_group_fail(task_group, cause);
	if (!task_group->session->counting)
		smalti_ranks_give_up(cause);
	atomic_store(&task_group->broken, true);
}

void *smalti_task_group_calloc(struct smalti_task_group *task_group, int64_t count, int64_t size)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	void *memory = smalti_calloc(count, size, &error);
	if (!memory)
		smalti_task_group_break(task_group, &error);
	return memory;
}

/* Cancels by a failure without a cause: a signal handler can set a flag, but not lock. */
void smalti_task_group_cancel(struct smalti_task_group *task_group)
{
	atomic_store(&task_group->failed, true);
}

bool smalti_task_group_failed(const struct smalti_task_group *task_group)
{
	if (atomic_load(&task_group->failed))
		return true;
	for (int i = 0; i < task_group->dependency_count; i++)
		if (smalti_task_group_failed(task_group->dependencies[i]))
			return true;
	return false;
}

bool smalti_task_group_broken(const struct smalti_task_group *task_group)
{
	if (atomic_load(&task_group->broken))
		return true;
	for (int i = 0; i < task_group->dependency_count; i++)
		if (smalti_task_group_broken(task_group->dependencies[i]))
			return true;
	return false;
}

/* Blames a lost source for everything else that failed, here and in the groups that depend on it. */
static int check_sources(struct smalti_task_group *task_group, struct smalti_error *cause)
{
	int status = 0;
	for (const struct smalti_task_group_source *s = task_group->sources; s && status == 0; s = s->next)
		status = s->check(s->of, cause);
	for (int i = 0; i < task_group->dependency_count && status == 0; i++)
		status = check_sources(task_group->dependencies[i], cause);
	if (status < 0)
		smalti_task_group_fail_because(task_group, cause);
	return status;
}

int smalti_task_group_status(struct smalti_task_group *task_group, struct smalti_error *error)
{
	int status = 0;
	check_sources(task_group, &(struct smalti_error)SMALTI_NO_ERROR);
	if (atomic_load(&task_group->failed)) {
		HOLD(&task_group->mutex);
		status = task_group->cause ? smalti_pass(error, task_group->cause)
					   : smalti_fail(error, SMALTI_ECANCELLED, "cancelled");
	}
	for (int i = 0; i < task_group->dependency_count && status == 0; i++)
		status = smalti_task_group_status(task_group->dependencies[i], error);
	return status;
}

void smalti_task_group_bottom_level(struct smalti_task_group *task_group, int64_t tasks)
{
	task_group->bottom_level = tasks < SMALTI_MAX_BOTTOM_LEVEL ? tasks : SMALTI_MAX_BOTTOM_LEVEL;
}

void smalti_task_group_place(struct smalti_task_group *task_group, int place)
{
	task_group->place = place;
}

void smalti_task_group_behind(struct smalti_task_group *task_group, struct smalti_tile *tile)
{
	task_group->behind = tile;
	if (tile && task_group->session->counting)
		smalti_counting_behind(task_group->session->counting, task_group->place, tile);
}

int64_t smalti_task_group_priority(const struct smalti_task_group *task_group)
{
	const int64_t max = INT64_MAX / (SMALTI_MAX_BOTTOM_LEVEL + 1) - 1;
	return smalti_min(task_group->priority, max) * (SMALTI_MAX_BOTTOM_LEVEL + 1) +
	       task_group->bottom_level;
}
