/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the rates of the workers, alone and together: memory bandwidth and f32 arithmetic. */
#include "kernels/kernels.h"

#include "base/clock.h"
#include "topology/topology.h"

#include <starpu.h>

enum {
	PIECES = 32, /* of a worker's share, each timed: shorter than a time slice of a busy machine */
	PASSES = 2,
	MEGABYTE = 1 << 20,
	MIN_BYTES = 32 * MEGABYTE,
	MAX_BYTES = 128 * MEGABYTE, /* new memory takes time to get; this bounds the time on large caches */
	STEP = 6 * SMALTI_MEASURE_STEP, /* floats of a piece: copy halves it, triad divides it by three */
	FMA_ROUNDS = 1 << 16,           /* a fraction of a millisecond */
};

/* These run a piece of `count` floats and return its bytes or operations; *result depends on them. */
static int64_t run_read(int64_t count, float *x, float *result)
{
	*result += smalti_kernels()->measure_read(count, x);
	return count * (int64_t)sizeof(float);
}

static int64_t run_copy(int64_t count, float *x, float *result)
{
	memcpy(x + count / 2, x, (size_t)(count / 2) * sizeof(float));
	*result += x[count - 1];
	return count * (int64_t)sizeof(float);
}

static int64_t run_triad(int64_t count, float *x, float *result)
{
	int64_t part = count / 3;
	smalti_kernels()->measure_triad(part, x, x + part, x + 2 * part);
	*result += x[count - 1];
	return count * (int64_t)sizeof(float);
}

static int64_t run_fma(int64_t count, float *x, float *result)
{
	(void)count, (void)x;
	return smalti_kernels()->measure_fma(FMA_ROUNDS, result);
}

enum { READ, COPY, TRIAD, FMA, KINDS };

static int64_t (*const kinds[KINDS])(int64_t count, float *x, float *result) = {
    [READ] = run_read, [COPY] = run_copy, [TRIAD] = run_triad, [FMA] = run_fma};

/* A race of workers, which start each kind together. */
struct race {
	int64_t count; /* floats in a piece */
	float *memory; /* of all workers */
	pthread_barrier_t line;
	pthread_mutex_t mutex; /* guards what follows */
	int joined;
	double rate[KINDS]; /* sums over the workers */
};

/* Returns the median of all pieces, so that interrupted and cached ones do not count. */
static double measure_kind(int kind, int64_t count, float *x, float *result)
{
	double rates[PASSES * PIECES];
	for (int i = 0; i < PASSES * PIECES; i++) {
		double start = smalti_now();
		int64_t work = kinds[kind](count, x + i % PIECES * count, result);
		double seconds = smalti_now() - start;
		rates[i] = (double)work / (seconds > 1e-9 ? seconds : 1e-9);
	}
	qsort(rates, PASSES * PIECES, sizeof(rates[0]), smalti_ascending);
	return rates[PASSES * PIECES / 2];
}

static void run_race(void *argument)
{
	struct race *race = argument;
	pthread_mutex_lock(&race->mutex);
	int rank = race->joined++;
	pthread_mutex_unlock(&race->mutex);
	float *x = race->memory + rank * PIECES * race->count, result = 0;
	memset(x, 0, (size_t)(PIECES * race->count) * sizeof(float)); /* places the memory near this worker */
	for (int kind = 0; kind < KINDS; kind++) {
		pthread_barrier_wait(&race->line);
		double rate = measure_kind(kind, race->count, x, &result);
		pthread_mutex_lock(&race->mutex);
		race->rate[kind] += rate;
		pthread_mutex_unlock(&race->mutex);
	}
	volatile float used = result; /* else the compiler may remove the work */
	(void)used;
}

static int measure(unsigned *ids, int workers, int64_t bytes, struct smalti_topology_rate *rate,
		   struct smalti_error *error)
{
	struct race race = {.mutex = PTHREAD_MUTEX_INITIALIZER};
	race.count = bytes / (int64_t)sizeof(float) / workers / PIECES / STEP * STEP;
	int64_t total = race.count * PIECES * workers;
	race.memory = smalti_aligned_alloc(total, sizeof(float), error);
	if (!race.memory)
		return -1;
	pthread_barrier_init(&race.line, NULL, (unsigned)workers);
	starpu_execute_on_specific_workers(run_race, &race, (unsigned)workers, ids, "measure");
	pthread_barrier_destroy(&race.line);
	pthread_mutex_destroy(&race.mutex);
	free(race.memory);
	*rate = (struct smalti_topology_rate){.workers = workers,
					      .bytes = total * (int64_t)sizeof(float),
					      .read = race.rate[READ],
					      .copy = race.rate[COPY],
					      .triad = race.rate[TRIAD],
					      .fma = race.rate[FMA]};
	return 0;
}

/* Returns twice the largest caches together, so that they do not serve it, as far as time allows. */
static int64_t bytes_to_touch(const struct smalti_topology *topology)
{
	int64_t bytes = MIN_BYTES;
	for (int64_t i = 0; i < topology->cache_count; i++) {
		const struct smalti_topology_cache *cache = &topology->caches[i];
		if (cache->bytes >= MAX_BYTES || cache->count >= MAX_BYTES)
			return MAX_BYTES;
		bytes = smalti_max(bytes, 2 * cache->bytes * cache->count);
	}
	return smalti_min(bytes, MAX_BYTES);
}

int smalti_topology_rates(struct smalti_topology *topology, struct smalti_error *error)
{
	static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER; /* two races would wait for ever */
	int found[STARPU_NMAXWORKERS];
	unsigned ids[STARPU_NMAXWORKERS];
	int workers = (int)starpu_worker_get_ids_by_type(STARPU_CPU_WORKER, found, STARPU_NMAXWORKERS);
	if (!workers)
		return 0;
	for (int i = 0; i < workers; i++)
		ids[i] = (unsigned)found[i];
	topology->rates = smalti_calloc(2, sizeof(*topology->rates), error);
	if (!topology->rates)
		return -1;
	int64_t bytes = bytes_to_touch(topology);
	HOLD_MUTEX(&one_at_a_time);
	int status = measure(ids, 1, bytes, &topology->rates[0], error);
	if (status == 0 && workers > 1)
		status = measure(ids, workers, bytes, &topology->rates[1], error);
	topology->rate_count = workers > 1 ? 2 : 1;
	return status;
}
