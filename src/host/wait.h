/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <pthread.h>

/* Mutexes and conditions of threads that wait for tasks, or may lose the processor while they hold a mutex.
 * They are the system's; on a simulated machine they are those of StarPU's threads, which all run in one
 * system thread. They need no StarPU header, which differs between the builds. */
struct smalti_mutex {
	union {
		pthread_mutex_t system;
		void *simulated;
	};
};
struct smalti_condition {
	union {
		pthread_cond_t system;
		void *simulated;
	};
};

void smalti_mutex_open(struct smalti_mutex *mutex);
void smalti_mutex_close(struct smalti_mutex *mutex);
void smalti_mutex_lock(struct smalti_mutex *mutex);
void smalti_mutex_unlock(struct smalti_mutex *mutex);

/* Holds the mutex to the end of the scope. */
#define HOLD(mutex)                                                                                          \
	struct smalti_mutex *held __attribute__((cleanup(smalti_mutex_let_go), unused)) =                    \
	    smalti_mutex_hold(mutex)
static inline struct smalti_mutex *smalti_mutex_hold(struct smalti_mutex *mutex)
{
	smalti_mutex_lock(mutex);
	return mutex;
}
static inline void smalti_mutex_let_go(struct smalti_mutex **mutex)
{
	smalti_mutex_unlock(*mutex);
}

void smalti_condition_open(struct smalti_condition *condition);
void smalti_condition_close(struct smalti_condition *condition);
/* Wakes all threads that wait. */
void smalti_condition_broadcast(struct smalti_condition *condition);
/* Waits, releasing the mutex meanwhile. */
void smalti_condition_wait(struct smalti_condition *condition, struct smalti_mutex *mutex);
/* Waits for at most `nanoseconds`; false when they are over. In simulated time it waits without limit, for
 * nobody watches what would be done in between. */
bool smalti_condition_wait_some(struct smalti_condition *condition, struct smalti_mutex *mutex,
				int64_t nanoseconds);
