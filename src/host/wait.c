/* SPDX-License-Identifier: Apache-2.0 */
#include "host/wait.h"
#include "base/clock.h"

#include <starpu_thread.h>

static_assert(sizeof(starpu_pthread_mutex_t) <= sizeof(struct smalti_mutex), "a mutex has room for StarPU's");
static_assert(sizeof(starpu_pthread_cond_t) <= sizeof(struct smalti_condition), "and a condition");

static starpu_pthread_mutex_t *mutex_of(struct smalti_mutex *mutex)
{
	return (void *)mutex;
}

static starpu_pthread_cond_t *condition_of(struct smalti_condition *condition)
{
	return (void *)condition;
}

void smalti_mutex_open(struct smalti_mutex *mutex)
{
	starpu_pthread_mutex_init(mutex_of(mutex), NULL);
}

void smalti_mutex_close(struct smalti_mutex *mutex)
{
	starpu_pthread_mutex_destroy(mutex_of(mutex));
}

void smalti_mutex_lock(struct smalti_mutex *mutex)
{
	starpu_pthread_mutex_lock(mutex_of(mutex));
}

void smalti_mutex_unlock(struct smalti_mutex *mutex)
{
	starpu_pthread_mutex_unlock(mutex_of(mutex));
}

void smalti_condition_open(struct smalti_condition *condition)
{
	starpu_pthread_cond_init(condition_of(condition), NULL);
}

void smalti_condition_close(struct smalti_condition *condition)
{
	starpu_pthread_cond_destroy(condition_of(condition));
}

void smalti_condition_broadcast(struct smalti_condition *condition)
{
	starpu_pthread_cond_broadcast(condition_of(condition));
}

void smalti_condition_wait(struct smalti_condition *condition, struct smalti_mutex *mutex)
{
	starpu_pthread_cond_wait(condition_of(condition), mutex_of(mutex));
}

bool smalti_condition_wait_some(struct smalti_condition *condition, struct smalti_mutex *mutex,
				int64_t nanoseconds)
{
#ifdef SMALTI_SIMGRID
	(void)nanoseconds;
	smalti_condition_wait(condition, mutex);
	return true;
#else
	const struct timespec until = smalti_deadline(nanoseconds);
	return pthread_cond_clockwait(&condition->system, &mutex->system, CLOCK_MONOTONIC, &until) == 0;
#endif
}
