/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/task_group.h"

#include "base/clock.h"
#include "rt/session.h"

#include <math.h>
#include <stdatomic.h>

/* StarPU's priorities have 32 bits: so they tell 2^17 requests from each other. */
enum { NAME_LENGTH = 64, LONGEST_PATH = (1 << 14) - 1 };

struct smalti_task_group {
	struct smalti_session *session;
	struct smalti_task_group *needs[SMALTI_MAX_NEEDS];
	int needs_count;
	int64_t priority;
	int64_t path; /* tasks behind those that are inserted */
	char name[NAME_LENGTH];
	bool compares;
	enum smalti_grain grain;
	struct smalti_recording *recording;
	atomic_bool failed, broken;
	pthread_mutex_t mutex;      /* guards what follows */
	struct smalti_position now; /* of the tasks that are inserted */
	int64_t *left;              /* tasks of each stage from 1 on that are inserted and not ended */
	int64_t stages;             /* that it has room for */
	pthread_cond_t idle;
	bool sealed;
	int64_t running; /* tasks inserted and not ended, and one more until sealed */
	struct smalti_task_group_progress progress;
	void (*done)(void *user);
	void *done_user;
	/* NULL: none. Not within, since a task group is made for every image: the C library gives out small
	 * pieces of memory at once, but tidies up all that were freed before it gives out a large one. */
	const struct smalti_error *cause;
};

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
	task_group->now = (struct smalti_position){.layer = -1, .band = -1};
	snprintf(task_group->name, sizeof(task_group->name), "%s", name);
	pthread_mutex_init(&task_group->mutex, NULL);
	pthread_cond_init(&task_group->idle, NULL);
	return task_group;
}

void smalti_task_group_needs(struct smalti_task_group *task_group, struct smalti_task_group *needed)
{
	if (task_group->needs_count < SMALTI_MAX_NEEDS) {
		task_group->needs[task_group->needs_count++] = needed;
		return;
	}
	struct smalti_error error;
	smalti_fail(&error, SMALTI_EINVAL, "'%s' needs more than %d others", task_group->name,
		    SMALTI_MAX_NEEDS);
	smalti_task_group_fail(task_group, &error);
}

void smalti_task_group_set_grain(struct smalti_task_group *task_group, enum smalti_grain grain)
{
	task_group->grain = grain;
}

enum smalti_grain smalti_task_group_grain(const struct smalti_task_group *task_group)
{
	return task_group->grain;
}

struct smalti_recording *smalti_task_group_recording(const struct smalti_task_group *task_group)
{
	return task_group->recording;
}

void smalti_task_group_set_recording(struct smalti_task_group *task_group, struct smalti_recording *recording)
{
	task_group->recording = recording;
}

/* Those of no stage, and those without arithmetic, say nothing of how far the work is. */
static bool counts(int64_t stage, double flops)
{
	return stage > 0 && flops > 0;
}

struct smalti_position smalti_task_group_task_begins(struct smalti_task_group *task_group, double flops)
{
	pthread_mutex_lock(&task_group->mutex);
	const struct smalti_position position = task_group->now;
	task_group->running++;
	task_group->progress.left++;
	task_group->progress.inserted += flops;
	if (counts(position.stage, flops))
		task_group->left[position.stage]++;
	pthread_mutex_unlock(&task_group->mutex);
	return position;
}

/* Unlocks the mutex. */
static void one_less(struct smalti_task_group *task_group)
{
	bool last = --task_group->running == 0;
	void (*done)(void *user) = last ? task_group->done : NULL;
	void *user = task_group->done_user;
	if (task_group->running <= 1)
		pthread_cond_broadcast(&task_group->idle);
	pthread_mutex_unlock(&task_group->mutex);
	if (done)
		done(user); /* may free the task group */
}

void smalti_task_group_compare(struct smalti_task_group *task_group)
{
	task_group->compares = true;
}

bool smalti_task_group_compares(const struct smalti_task_group *task_group)
{
	return task_group->compares;
}

void smalti_task_group_task_took(struct smalti_task_group *task_group, double seconds, double predicted)
{
	static const double shortest = 1e-4; /* of the tasks whose predictions count */
	pthread_mutex_lock(&task_group->mutex);
	task_group->progress.seconds += seconds;
	if (seconds >= shortest && !isnan(predicted)) {
		task_group->progress.predicted += seconds;
		task_group->progress.deviation += fabs(seconds - predicted);
	}
	pthread_mutex_unlock(&task_group->mutex);
}

void smalti_task_group_task_did(struct smalti_task_group *task_group, int64_t stage, double flops)
{
	pthread_mutex_lock(&task_group->mutex);
	struct smalti_task_group_progress *progress = &task_group->progress;
	progress->done += flops;
	if (counts(stage, flops))
		task_group->left[stage]--;
	/* tasks that wait for nothing of their stage run ahead: the stage is over with its last task only */
	while (progress->stage < task_group->now.stage && task_group->left[progress->stage] == 0)
		progress->stage++;
	pthread_mutex_unlock(&task_group->mutex);
}

void smalti_task_group_task_ends(struct smalti_task_group *task_group)
{
	pthread_mutex_lock(&task_group->mutex);
	task_group->progress.left--;
	one_less(task_group);
}

void smalti_task_group_progress(struct smalti_task_group *task_group,
				struct smalti_task_group_progress *progress)
{
	pthread_mutex_lock(&task_group->mutex);
	*progress = task_group->progress;
	pthread_mutex_unlock(&task_group->mutex);
}

/* Under the mutex. */
static int make_room(struct smalti_task_group *task_group, int64_t stage, struct smalti_error *error)
{
	if (stage < task_group->stages)
		return 0;
	int64_t *left = smalti_calloc(2 * (stage + 1), sizeof(*left), error);
	if (!left)
		return -1;
	if (task_group->stages)
		memcpy(left, task_group->left, (size_t)task_group->stages * sizeof(*left));
	free(task_group->left);
	task_group->left = left;
	task_group->stages = 2 * (stage + 1);
	return 0;
}

void smalti_task_group_stage(struct smalti_task_group *task_group, int64_t stage)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	pthread_mutex_lock(&task_group->mutex);
	const int status = make_room(task_group, stage, &error);
	if (status == 0)
		task_group->now.stage = stage;
	pthread_mutex_unlock(&task_group->mutex);
	if (status < 0)
		smalti_task_group_fail(task_group, &error);
}

void smalti_task_group_at(struct smalti_task_group *task_group, int64_t layer, int64_t band)
{
	pthread_mutex_lock(&task_group->mutex);
	task_group->now.layer = layer;
	task_group->now.band = band;
	pthread_mutex_unlock(&task_group->mutex);
}

void smalti_task_group_seal(struct smalti_task_group *task_group, void (*done)(void *user), void *user)
{
	pthread_mutex_lock(&task_group->mutex);
	task_group->sealed = true;
	task_group->done = done;
	task_group->done_user = user;
	one_less(task_group);
}

/* Under the mutex. */
static bool is_idle(const struct smalti_task_group *task_group)
{
	return task_group->running <= (task_group->sealed ? 0 : 1);
}

void smalti_task_group_wait(struct smalti_task_group *task_group)
{
	pthread_mutex_lock(&task_group->mutex);
	while (!is_idle(task_group))
		pthread_cond_wait(&task_group->idle, &task_group->mutex);
	pthread_mutex_unlock(&task_group->mutex);
}

bool smalti_task_group_wait_for(struct smalti_task_group *task_group, int64_t nanoseconds)
{
	const struct timespec until = smalti_deadline(CLOCK_REALTIME, nanoseconds);
	pthread_mutex_lock(&task_group->mutex);
	int status = 0;
	while (!is_idle(task_group) && status == 0)
		status = pthread_cond_timedwait(&task_group->idle, &task_group->mutex, &until);
	const bool idle = is_idle(task_group);
	pthread_mutex_unlock(&task_group->mutex);
	return idle;
}

void smalti_task_group_free(struct smalti_task_group *task_group)
{
	if (!task_group)
		return;
	smalti_task_group_wait(task_group);
	free(task_group->left);
	if (task_group->cause != &no_memory)
		free((void *)task_group->cause);
	pthread_cond_destroy(&task_group->idle);
	pthread_mutex_destroy(&task_group->mutex);
	free(task_group);
}

void smalti_task_group_fail(struct smalti_task_group *task_group, const struct smalti_error *cause)
{
	pthread_mutex_lock(&task_group->mutex);
	if (!task_group->cause) {
		struct smalti_error *kept = malloc(sizeof(*kept));
		if (kept)
			*kept = *cause;
		task_group->cause = kept ? kept : &no_memory;
	}
	pthread_mutex_unlock(&task_group->mutex);
	atomic_store(&task_group->failed, true);
}

void smalti_task_group_break(struct smalti_task_group *task_group, const struct smalti_error *cause)
{
	smalti_task_group_fail(task_group, cause);
	atomic_store(&task_group->broken, true);
}

/* A failure without a cause is a cancellation: a handler can set a flag, but not lock. */
void smalti_task_group_cancel(struct smalti_task_group *task_group)
{
	atomic_store(&task_group->failed, true);
}

bool smalti_task_group_failed(const struct smalti_task_group *task_group)
{
	if (atomic_load(&task_group->failed))
		return true;
	for (int i = 0; i < task_group->needs_count; i++)
		if (smalti_task_group_failed(task_group->needs[i]))
			return true;
	return false;
}

bool smalti_task_group_broken(const struct smalti_task_group *task_group)
{
	if (atomic_load(&task_group->broken))
		return true;
	for (int i = 0; i < task_group->needs_count; i++)
		if (smalti_task_group_broken(task_group->needs[i]))
			return true;
	return false;
}

int smalti_task_group_status(struct smalti_task_group *task_group, struct smalti_error *error)
{
	int status = 0;
	if (atomic_load(&task_group->failed)) {
		pthread_mutex_lock(&task_group->mutex);
		status = task_group->cause
			     ? smalti_fail(error, task_group->cause->code, "%s", task_group->cause->message)
			     : smalti_fail(error, SMALTI_ECANCELLED, "cancelled");
		pthread_mutex_unlock(&task_group->mutex);
	}
	for (int i = 0; i < task_group->needs_count && status == 0; i++)
		status = smalti_task_group_status(task_group->needs[i], error);
	return status;
}

const char *smalti_task_group_name(const struct smalti_task_group *task_group)
{
	return task_group->name;
}

struct smalti_session *smalti_task_group_session(const struct smalti_task_group *task_group)
{
	return task_group->session;
}

void smalti_task_group_path(struct smalti_task_group *task_group, int64_t tasks)
{
	task_group->path = tasks < LONGEST_PATH ? tasks : LONGEST_PATH;
}

int64_t smalti_task_group_priority(const struct smalti_task_group *task_group)
{
	const int64_t most = INT64_MAX / (LONGEST_PATH + 1) - 1;
	const int64_t own = task_group->priority < most ? task_group->priority : most;
	return own * (LONGEST_PATH + 1) + task_group->path;
}
