/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/kernels.h"

#include "base/base.h"
#include "base/clock.h"
#include "bench/peak.h"
#include "bench/statistics.h"
#include "host/pool.h"
#include "kernels/groupnorm.h"
#include "rt/op.h"
#include "samplers/noise.h"

#include <stdlib.h>
#include <string.h>

enum { PATTERN = 65521, MAX_CALLS = 10000 }; /* elements until a buffer's values repeat: a prime */
static const double MIN_SECONDS = 0.01;      /* of a repeat: until the clock follows the load */

static void *make_buffer(struct smalti_pool *pool, const struct smalti_bench_buffer *buffer, uint32_t *state,
			 struct smalti_error *error)
{
	const int64_t size = smalti_bench_bytes(buffer);
	char *data = smalti_pool_acquire(pool, size); /* the same kind of pages as tiles have */
	if (!data) {
		smalti_fail(error, SMALTI_ENOMEM, "%lld bytes to measure a kernel with", (long long)size);
		return NULL;
	}
	const int64_t drawn = buffer->count < PATTERN ? buffer->count : PATTERN;
	smalti_bench_fill(buffer->kind, drawn, state, data);
	const int64_t period = size / buffer->count * drawn;
	for (int64_t at = period; at < size; at += period)
		memcpy(data + at, data, (size_t)(size - at < period ? size - at : period));
	return data;
}

static int make_buffers(struct smalti_pool *pool, const struct smalti_bench_case *c,
			void *data[SMALTI_MAX_BUFFERS], struct smalti_error *error)
{
	struct smalti_bench_buffer buffers[SMALTI_MAX_BUFFERS] = {{SMALTI_BENCH_ABSENT, 0}};
	uint32_t state = 1;
	smalti_bench_buffers(c, buffers);
	for (int i = 0; i < SMALTI_MAX_BUFFERS; i++)
		if (buffers[i].kind != SMALTI_BENCH_ABSENT &&
		    !(data[i] = make_buffer(pool, &buffers[i], &state, error)))
			return -1;
	return 0;
}

static int call(const struct smalti_bench_case *c, void *const *data, int64_t calls, double *seconds,
		struct smalti_error *error)
{
	const struct smalti_op *op = &smalti_ops[c->op];
	const double start = smalti_now();
	for (int64_t i = 0; i < calls; i++)
		if (op->run(data, c->arguments, error) < 0)
			return -1;
	*seconds = (smalti_now() - start) / (double)calls;
	return 0;
}

/* Returns as many calls as make a repeat long enough, by the time of a later one. */
static int64_t calls_for(double seconds)
{
	const double calls = MIN_SECONDS / (seconds > 1e-9 ? seconds : 1e-9);
	return calls < 1 ? 1 : calls > MAX_CALLS ? MAX_CALLS : (int64_t)calls;
}

/* Runs the repeats; the peak at its clock follows each at once. */
static int repeat(const struct smalti_bench_case *c, void *const *data, int repeats, double *seconds,
		  double *peaks, struct smalti_error *error)
{
	double once;
	if (call(c, data, 1, &once, error) < 0 || call(c, data, 1, &once, error) < 0)
		return -1;
	const int64_t calls = calls_for(once);
	for (int i = 0; i < repeats; i++) {
		if (call(c, data, calls, &seconds[i], error) < 0)
			return -1;
		peaks[i] = smalti_peak_here();
	}
	return 0;
}

static void compare(const struct smalti_bench_case *c, const struct smalti_roofline *roofline,
		    struct smalti_bench_kernel *result)
{
	const struct smalti_op *op = &smalti_ops[c->op];
	result->flops = op->flops(c->arguments);
	result->bytes = op->bytes(c->arguments);
	if (c->compute == SMALTI_BF16 && roofline->bf16 > 0)
		result->peak = roofline->bf16;
	const double bandwidth = roofline->read > roofline->triad ? roofline->read : roofline->triad;
	const double arithmetic = result->flops / result->peak, memory = result->bytes / bandwidth;
	result->memory = memory > arithmetic;
	result->bound = result->memory ? memory : arithmetic;
}

int smalti_bench_kernel(const struct smalti_bench_case *c, int repeats,
			const struct smalti_roofline *roofline, struct smalti_bench_kernel *result,
			struct smalti_error *error)
{
	void *data[SMALTI_MAX_BUFFERS] = {NULL};
	double *seconds = smalti_calloc(repeats, 2 * sizeof(*seconds), error);
	struct smalti_pool *pool = seconds ? smalti_pool_new(0, error) : NULL;
	int status = pool ? make_buffers(pool, c, data, error) : -1;
	if (status == 0)
		status = repeat(c, data, repeats, seconds, seconds + repeats, error);
	if (status == 0) {
		result->peak = smalti_median(seconds + repeats, repeats);
		result->seconds = smalti_median(seconds, repeats);
		result->least = seconds[0]; /* they are sorted */
		compare(c, roofline, result);
	}
	smalti_pool_free(pool);
	free(seconds);
	return status;
}
