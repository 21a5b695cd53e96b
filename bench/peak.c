/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peak.h"

#include "base/clock.h"
#include "kernels/measure.h"
#include "rt/session.h"

#include <pthread.h>
#include <starpu.h>
#include <stdlib.h>

enum { PIECES = 21, ROUNDS = 1 << 16 };

static int ascending(const void *a, const void *b)
{
	const double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

double smalti_peak_here(void)
{
	double rates[PIECES];
	float sum = 0;
	for (int piece = 0; piece < PIECES; piece++) {
		const double start = smalti_now(), work = (double)smalti_measure_fma(ROUNDS, &sum);
		const double seconds = smalti_now() - start;
		rates[piece] = work / (seconds > 1e-9 ? seconds : 1e-9);
	}
	volatile float used = sum; /* or the compiler may drop the work */
	(void)used;
	qsort(rates, PIECES, sizeof(rates[0]), ascending);
	return rates[PIECES / 2];
}

/* Workers that start together. */
struct race {
	pthread_barrier_t line;
	pthread_mutex_t mutex; /* guards the sum */
	double sum;
};

static void run(void *argument)
{
	struct race *race = argument;
	pthread_barrier_wait(&race->line);
	const double rate = smalti_peak_here();
	pthread_mutex_lock(&race->mutex);
	race->sum += rate;
	pthread_mutex_unlock(&race->mutex);
}

double smalti_peak_of_workers(const struct smalti_session *session)
{
	int found[STARPU_NMAXWORKERS];
	unsigned ids[STARPU_NMAXWORKERS];
	if (session->plain)
		return smalti_peak_here();
	const unsigned workers = starpu_worker_get_ids_by_type(STARPU_CPU_WORKER, found, STARPU_NMAXWORKERS);
	for (unsigned i = 0; i < workers; i++)
		ids[i] = (unsigned)found[i];
	struct race race = {.mutex = PTHREAD_MUTEX_INITIALIZER};
	pthread_barrier_init(&race.line, NULL, workers);
	starpu_execute_on_specific_workers(run, &race, workers, ids, "peak");
	pthread_barrier_destroy(&race.line);
	pthread_mutex_destroy(&race.mutex);
	return race.sum;
}
