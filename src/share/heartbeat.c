/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "share/lock.h"

#include <signal.h>
#include <sys/stat.h>

enum { BEATS = 4 }; /* in a lease */

struct smalti_heartbeat {
	int64_t lease; /* seconds */
	pthread_t thread;
	pthread_mutex_t mutex; /* for what follows */
	pthread_cond_t wake;
	bool stop;
	int *files;
	int64_t count;
};

static void *beat(void *user)
{
	struct smalti_heartbeat *heartbeat = user;
	HOLD_MUTEX(&heartbeat->mutex);
	while (!heartbeat->stop) {
		for (int64_t i = 0; i < heartbeat->count; i++)
			(void)futimens(heartbeat->files[i], NULL); /* if it fails, the lease runs out */
		const struct timespec next = smalti_deadline(heartbeat->lease * 1000000000 / BEATS);
		pthread_cond_clockwait(&heartbeat->wake, &heartbeat->mutex, CLOCK_MONOTONIC, &next);
	}
	return NULL;
}

/* Blocks signals, which are for the program's own threads. */
static int start_thread(struct smalti_heartbeat *heartbeat)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	const int status = pthread_create(&heartbeat->thread, NULL, beat, heartbeat);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return status;
}

static void free_all(struct smalti_heartbeat *heartbeat)
{
	pthread_cond_destroy(&heartbeat->wake);
	pthread_mutex_destroy(&heartbeat->mutex);
	free(heartbeat->files);
	free(heartbeat);
}

struct smalti_heartbeat *smalti_heartbeat_start(int64_t lease_seconds, struct smalti_error *error)
{
	struct smalti_heartbeat *heartbeat = smalti_calloc(1, sizeof(*heartbeat), error);
	if (!heartbeat)
		return NULL;
	heartbeat->lease = lease_seconds;
	pthread_condattr_t attributes;
	pthread_condattr_init(&attributes);
	pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	pthread_cond_init(&heartbeat->wake, &attributes);
	pthread_condattr_destroy(&attributes);
	pthread_mutex_init(&heartbeat->mutex, NULL);
	errno = start_thread(heartbeat);
	if (errno == 0)
		return heartbeat;
	smalti_fail_errno(error, "no thread can be started");
	free_all(heartbeat);
	return NULL;
}

void smalti_heartbeat_stop(struct smalti_heartbeat *heartbeat)
{
	if (!heartbeat)
		return;
	pthread_mutex_lock(&heartbeat->mutex);
	heartbeat->stop = true;
	pthread_cond_signal(&heartbeat->wake);
	pthread_mutex_unlock(&heartbeat->mutex);
	pthread_join(heartbeat->thread, NULL);
	free_all(heartbeat);
}

int smalti_heartbeat_add(struct smalti_heartbeat *heartbeat, int file, struct smalti_error *error)
{
	HOLD_MUTEX(&heartbeat->mutex);
	if (smalti_grow(&heartbeat->files, heartbeat->count, sizeof(*heartbeat->files), error) < 0)
		return -1;
	heartbeat->files[heartbeat->count++] = file;
	return 0;
}

void smalti_heartbeat_remove(struct smalti_heartbeat *heartbeat, int file)
{
	HOLD_MUTEX(&heartbeat->mutex);
	for (int64_t i = 0; i < heartbeat->count; i++)
		if (heartbeat->files[i] == file)
			heartbeat->files[i] = heartbeat->files[--heartbeat->count];
}
