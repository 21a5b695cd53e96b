/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/throttle.h"

#include "base/clock.h"

#include <pthread.h>
#include <stdbool.h>

enum { RESUME_AT = SMALTI_MOST_TASKS - SMALTI_MOST_TASKS / 4, SERVE_NANOSECONDS = 20000000 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t room = PTHREAD_COND_INITIALIZER;
static int64_t tasks;             /* guarded by mutex, as is the next */
static bool waits_for_task_group; /* each end of a task is of interest */
static _Thread_local void (*serve_function)(void *user);
static _Thread_local void *serve_user;

static pthread_mutex_t inserting = PTHREAD_RECURSIVE_MUTEX_INITIALIZER_NP;

void smalti_insertion_begin(void)
{
	pthread_mutex_lock(&inserting);
}

void smalti_insertion_end(void)
{
	pthread_mutex_unlock(&inserting);
}

static void wait_a_moment(void)
{
	const struct timespec until = smalti_deadline(CLOCK_REALTIME, SERVE_NANOSECONDS);
	pthread_cond_timedwait(&room, &mutex, &until);
}

/* With the mutex, which it lets go meanwhile. */
static void wait_and_serve(void)
{
	wait_a_moment();
	pthread_mutex_unlock(&mutex);
	if (serve_function)
		serve_function(serve_user);
	pthread_mutex_lock(&mutex);
}

void smalti_throttle_enter(void)
{
	pthread_mutex_lock(&mutex);
	if (tasks >= SMALTI_MOST_TASKS)
		while (tasks > RESUME_AT)
			wait_and_serve();
	tasks++;
	pthread_mutex_unlock(&mutex);
}

int64_t smalti_throttle_tasks(void)
{
	pthread_mutex_lock(&mutex);
	const int64_t count = tasks;
	pthread_mutex_unlock(&mutex);
	return count;
}

void smalti_throttle_leave(void)
{
	pthread_mutex_lock(&mutex);
	if (--tasks == RESUME_AT || waits_for_task_group)
		pthread_cond_signal(&room);
	pthread_mutex_unlock(&mutex);
}

static int64_t tasks_of(struct smalti_task_group *task_group)
{
	struct smalti_task_group_progress progress;
	smalti_task_group_progress(task_group, &progress);
	return progress.left;
}

void smalti_throttle_task_group(struct smalti_task_group *task_group, int64_t most)
{
	pthread_mutex_lock(&mutex);
	waits_for_task_group = true;
	while (tasks_of(task_group) > most)
		wait_and_serve();
	waits_for_task_group = false;
	pthread_mutex_unlock(&mutex);
}

void smalti_throttle_serve(void (*serve)(void *user), void *user)
{
	serve_function = serve;
	serve_user = user;
}
