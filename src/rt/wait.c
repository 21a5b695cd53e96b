/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/wait.h"
#include "base/clock.h"

void smalti_mutex_open(struct smalti_mutex *mutex)
{
	starpu_pthread_mutex_init(&mutex->mutex, NULL);
}

void smalti_mutex_close(struct smalti_mutex *mutex)
{
	starpu_pthread_mutex_destroy(&mutex->mutex);
}

void smalti_condition_open(struct smalti_condition *condition)
{
	starpu_pthread_cond_init(&condition->condition, NULL);
}

void smalti_condition_close(struct smalti_condition *condition)
{
	starpu_pthread_cond_destroy(&condition->condition);
}

void smalti_condition_tell(struct smalti_condition *condition)
{
	starpu_pthread_cond_broadcast(&condition->condition);
}

void smalti_condition_wait(struct smalti_condition *condition, struct smalti_mutex *mutex)
{
	starpu_pthread_cond_wait(&condition->condition, &mutex->mutex);
}

bool smalti_condition_wait_some(struct smalti_condition *condition, struct smalti_mutex *mutex,
				int64_t nanoseconds)
{
#ifdef STARPU_SIMGRID
	(void)nanoseconds;
	smalti_condition_wait(condition, mutex);
	return true;
#else
	const struct timespec until = smalti_deadline(nanoseconds);
	return pthread_cond_clockwait(&condition->condition, &mutex->mutex, CLOCK_MONOTONIC, &until) == 0;
#endif
}
