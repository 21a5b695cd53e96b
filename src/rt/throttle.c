/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/throttle.h"

enum { SERVE_NANOSECONDS = 20000000 };

void smalti_throttle_open(struct smalti_throttle *throttle)
{
	pthread_mutexattr_t recursive;
	pthread_mutexattr_init(&recursive);
	pthread_mutexattr_settype(&recursive, PTHREAD_MUTEX_RECURSIVE);
	pthread_mutex_init(&throttle->inserting, &recursive);
	pthread_mutexattr_destroy(&recursive);
	smalti_mutex_open(&throttle->mutex);
	smalti_condition_open(&throttle->room);
	smalti_throttle_places(throttle, 1);
}

void smalti_throttle_close(struct smalti_throttle *throttle)
{
	smalti_condition_close(&throttle->room);
	smalti_mutex_close(&throttle->mutex);
	pthread_mutex_destroy(&throttle->inserting);
}

void smalti_throttle_places(struct smalti_throttle *throttle, int places)
{
	throttle->max = SMALTI_MAX_TASKS * smalti_min(places, SMALTI_THROTTLED_PLACES);
}

/* Returns the number of tasks at which insertion goes on. */
static int64_t resume_at(const struct smalti_throttle *throttle)
{
	return throttle->max - SMALTI_MAX_TASKS / 4;
}

void smalti_insertion_begin(struct smalti_throttle *throttle)
{
	pthread_mutex_lock(&throttle->inserting);
}

void smalti_insertion_end(struct smalti_throttle *throttle)
{
	pthread_mutex_unlock(&throttle->inserting);
}

/* Waits some time, releasing the mutex meanwhile. */
static void wait_and_serve(struct smalti_throttle *throttle)
{
	smalti_condition_wait_some(&throttle->room, &throttle->mutex, SERVE_NANOSECONDS);
	smalti_mutex_unlock(&throttle->mutex);
	if (throttle->serve)
		throttle->serve(throttle->user);
	smalti_mutex_lock(&throttle->mutex);
}

void smalti_throttle_enter(struct smalti_throttle *throttle)
{
	HOLD(&throttle->mutex);
	if (throttle->tasks >= throttle->max)
		while (throttle->tasks > resume_at(throttle))
			wait_and_serve(throttle);
	throttle->tasks++;
}

int64_t smalti_throttle_tasks(struct smalti_throttle *throttle)
{
	HOLD(&throttle->mutex);
	return throttle->tasks;
}

void smalti_throttle_leave(struct smalti_throttle *throttle)
{
	HOLD(&throttle->mutex);
	if (--throttle->tasks == resume_at(throttle) || throttle->waits_for_task_group)
		smalti_condition_broadcast(&throttle->room);
}

static int64_t tasks_of(struct smalti_task_group *task_group)
{
	struct smalti_task_group_progress progress;
	smalti_task_group_progress(task_group, &progress);
	return progress.left;
}

void smalti_throttle_task_group(struct smalti_throttle *throttle, struct smalti_task_group *task_group,
				int64_t max)
{
	HOLD(&throttle->mutex);
	throttle->waits_for_task_group = true;
	while (tasks_of(task_group) > max)
		wait_and_serve(throttle);
	throttle->waits_for_task_group = false;
}

void smalti_throttle_serve(struct smalti_throttle *throttle, void (*serve)(void *user), void *user)
{
	throttle->serve = serve;
	throttle->user = user;
}
