/* SPDX-License-Identifier: Apache-2.0 */
#include "kernel_case.h"

#include "base/base.h"
#include "harness.h"

#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *kernel_array(int64_t count, int64_t size)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	void *memory = smalti_aligned_alloc(count, size, &error);
	if (!memory)
		abort();
	return memory;
}

float *kernel_random(int64_t count, enum smalti_dtype dtype, uint64_t *state)
{
	float *values = kernel_array(count, 4);
	for (int64_t i = 0; i < count; i++)
		values[i] = smalti_round(dtype, test_random(state));
	return values;
}

void *kernel_given(const float *values, int64_t count, enum smalti_dtype dtype)
{
	void *memory = kernel_array(count, 4);
	smalti_narrow(dtype, values, count, memory);
	return memory;
}

struct misaligned kernel_misalign(enum smalti_dtype dtype, float *values, int64_t count)
{
	const size_t bytes = (size_t)(count * smalti_dtype_bytes(dtype));
	struct misaligned m = {malloc(bytes + 1), NULL};
	if (!m.block)
		abort();
	m.data = m.block + 1;
	void *aligned = kernel_given(values, count, dtype);
	memcpy(m.block + 1, aligned, bytes);
	smalti_widen(dtype, aligned, count, values);
	free(aligned);
	return m;
}

void kernel_compare(struct kernel_error *error, double found, double expected)
{
	const double off = fabs(found - expected);
	error->worst = off <= error->worst ? error->worst : off; /* NaN wins */
	error->largest = fmax(error->largest, fabs(expected));
}

void kernel_check(const struct kernel_error *error, double tolerance, const char *what)
{
	const bool ok = error->worst <= tolerance * fmax(error->largest, 1);
	if (!ok)
		fprintf(stderr, "%s: off by %g of %g\n", what, error->worst, error->largest);
	CHECK(ok, what);
}

struct smalti_moments kernel_moments(int64_t pixels, int64_t channels, int64_t groups, int64_t group,
				     const float *x)
{
	const int64_t size = channels / groups;
	struct smalti_moments m = {(double)(pixels * size), 0, 0};
	for (int pass = 0; pass < 2; pass++)
		for (int64_t i = 0; i < pixels * size; i++) {
			double value = (double)x[i / size * channels + group * size + i % size];
			if (pass == 0)
				m.mean += value / m.count;
			else
				m.m2 += (value - m.mean) * (value - m.mean);
		}
	return m;
}

struct worker {
	int (*call)(const void *operands, void *y, struct smalti_error *error);
	const void *operands;
	void *y;
	pthread_barrier_t *barrier;
};

static void *work(void *argument)
{
	struct worker *worker = argument;
	struct smalti_error error = SMALTI_NO_ERROR;
	pthread_barrier_wait(worker->barrier);
	for (int i = 0; i < 50; i++)
		if (worker->call(worker->operands, worker->y, &error))
			return NULL;
	return worker;
}

void kernel_check_threads(int (*call)(const void *operands, void *y, struct smalti_error *error),
			  const void *operands, const void *alone, int64_t bytes)
{
	pthread_barrier_t barrier;
	pthread_barrier_init(&barrier, NULL, 2);
	pthread_t threads[2];
	struct worker workers[2];
	for (int i = 0; i < 2; i++) {
		workers[i] = (struct worker){call, operands, kernel_array(bytes, 1), &barrier};
		CU_ASSERT_EQUAL_FATAL(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (int i = 0; i < 2; i++) {
		void *worker;
		pthread_join(threads[i], &worker);
		CU_ASSERT_PTR_NOT_NULL(worker);
		CU_ASSERT_EQUAL(memcmp(workers[i].y, alone, (size_t)bytes), 0);
		free(workers[i].y);
	}
	pthread_barrier_destroy(&barrier);
}
