/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/peak.h"

#include "base/clock.h"
#include "bench/statistics.h"
#include "kernels/kernels.h"
#include "rt/session.h"

#include <math.h>
#include <pthread.h>
#include <starpu.h>
#include <stdlib.h>

enum { PIECES = 21, ROUNDS = 1 << 16 };

double smalti_peak_here(void)
{
	double rates[PIECES];
	float sum = 0;
	for (int piece = 0; piece < PIECES; piece++) {
		const double start = smalti_now(), work = (double)smalti_kernels()->measure_fma(ROUNDS, &sum);
		const double seconds = smalti_now() - start;
		rates[piece] = work / (seconds > 1e-9 ? seconds : 1e-9);
	}
	volatile float used = sum; /* else the compiler might drop the work */
	(void)used;
	return smalti_median(rates, PIECES);
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
	if (session->sequential)
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

/* Products on a device. */
struct products {
	struct smalti_device *device;
	enum smalti_dtype dtype;
	double best; /* operations per second */
};

/* Returns the side of a product that takes some milliseconds at the device's nominal speed. */
static int64_t side_of(const struct smalti_device *device)
{
	enum { STEP = 128, LEAST = 256, MOST = 8192 };
	const double side = cbrt(smalti_device_speed(device) * 2e-3);
	return side < LEAST ? LEAST : side > MOST ? MOST : (int64_t)side / STEP * STEP;
}

static void multiply(void *argument)
{
	enum { PRODUCTS = 5 };
	struct products *p = argument;
	struct smalti_error error = SMALTI_NO_ERROR;
	const int64_t side = side_of(p->device), bytes = side * side * (int64_t)sizeof(float);
	const struct smalti_device_product product = {.rows = side,
						      .in = side,
						      .out = side,
						      .x_stride = side,
						      .w_stride = side,
						      .y_stride = side,
						      .dtype = p->dtype,
						      .result = SMALTI_F32};
	const struct smalti_device_memory *of[3];
	smalti_device_begin_step(p->device);
	for (int i = 0; i < 3; i++)
		if (!(of[i] = smalti_device_scratch(p->device, i, bytes, &error)))
			return;
	for (int i = 0; i < PRODUCTS; i++) {
		const double start = smalti_now();
		if (smalti_device_product(p->device, &product, of[0], of[1], of[2], &error) < 0 ||
		    smalti_device_finish(p->device, &error) < 0)
			return;
		p->best = fmax(p->best, 2.0 * (double)(side * side) * (double)side / (smalti_now() - start));
	}
}

double smalti_peak_of_device(const struct smalti_session *session, int worker, enum smalti_dtype dtype)
{
	unsigned id = (unsigned)worker;
	struct products products = {.device = smalti_session_device(session, worker)};
	products.dtype = smalti_device_operands(products.device, dtype);
	starpu_execute_on_specific_workers(multiply, &products, 1, &id, "products");
	return products.best > 0 ? products.best : (double)NAN;
}
