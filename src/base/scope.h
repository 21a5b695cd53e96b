/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A local variable that is released where its scope ends, whichever way that is left:
 *
 *	SCOPED(free) char *path = smalti_format(error, "%s/claims", directory);
 *
 * What is handed on is replaced by NULL. Not in functions that longjmp() leaves. */
#define SCOPED(release) __attribute__((cleanup(release##_scoped)))
/* Makes it possible for `type`, a pointer; `release` takes NULL, too. */
#define SCOPED_RELEASE(type, release)                                                                        \
	static inline void release##_scoped(type *variable)                                                  \
	{                                                                                                    \
		release(*variable);                                                                          \
	}

static inline void free_scoped(void *variable)
{
	void *memory;
	memcpy(&memory, variable, sizeof(memory));
	free(memory);
}

/* Of a descriptor that is negative there is none. */
static inline void close_scoped(const int *file)
{
	if (*file >= 0)
		close(*file);
}

/* Holds the mutex to the end of the scope. */
#define HOLD_MUTEX(mutex)                                                                                    \
	pthread_mutex_t *held_mutex __attribute__((cleanup(smalti_mutex_release), unused)) =                 \
	    smalti_mutex_take(mutex)
static inline pthread_mutex_t *smalti_mutex_take(pthread_mutex_t *mutex)
{
	pthread_mutex_lock(mutex);
	return mutex;
}
static inline void smalti_mutex_release(pthread_mutex_t **mutex)
{
	pthread_mutex_unlock(*mutex);
}
