/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/roofline.h"

#include "base/base.h"
#include "base/clock.h"
#include "host/pool.h"
#include "kernels/isa.h"
#include "kernels/kernels.h"
#include "kernels/matmul.h"

#include <stdlib.h>
#include <string.h>

enum {
	PIECES = 24,            /* of the memory, each timed: shorter than a time slice of a busy machine */
	PIECE_FLOATS = 3 << 20, /* all together are larger than most caches */
	FMA_ROUNDS = 1 << 18,
	PRODUCT = 2048, /* sides of the bf16 product */
	PRODUCTS = 4,
};
_Static_assert(PIECE_FLOATS / 3 % SMALTI_MEASURE_STEP == 0, "the loops take whole steps");

static void keep_best(double *best, double work, double start)
{
	const double seconds = smalti_now() - start, rate = work / (seconds > 1e-9 ? seconds : 1e-9);
	if (rate > *best)
		*best = rate;
}

static void measure_fma(double *best)
{
	float sum = 0;
	for (int piece = 0; piece < PIECES; piece++) {
		const double start = smalti_now();
		keep_best(best, (double)smalti_kernels()->measure_fma(FMA_ROUNDS, &sum), start);
	}
	volatile float used = sum; /* else the compiler might drop the work */
	(void)used;
}

static void measure_memory(struct smalti_roofline *roofline, float *x)
{
	const double bytes = (double)PIECE_FLOATS * sizeof(float);
	float sum = 0;
	for (int piece = 0; piece < PIECES; piece++) {
		const double start = smalti_now();
		sum += smalti_kernels()->measure_read(PIECE_FLOATS, x + (int64_t)piece * PIECE_FLOATS);
		keep_best(&roofline->read, bytes, start);
	}
	for (int piece = 0; piece < PIECES; piece++) {
		float *at = x + (int64_t)piece * PIECE_FLOATS;
		const int64_t part = PIECE_FLOATS / 3;
		const double start = smalti_now();
		smalti_kernels()->measure_triad(part, at, at + part, at + 2 * part);
		keep_best(&roofline->triad, bytes, start);
	}
	volatile float used = sum;
	(void)used;
}

static int run_products(double *best, const void *x, struct smalti_packed packed, void *y,
			struct smalti_error *error)
{
	const struct smalti_matmul matmul = {PRODUCT,     PRODUCT,     PRODUCT,
					     SMALTI_BF16, SMALTI_BF16, SMALTI_EPILOGUE_NONE};
	const struct smalti_weight_part part = {x, SMALTI_BF16, PRODUCT};
	int status = smalti_matmul_pack(PRODUCT, PRODUCT, SMALTI_BF16, &part, 1, packed, error);
	for (int i = 0; i < PRODUCTS && status == 0; i++) {
		const double start = smalti_now();
		status = smalti_matmul(&matmul, x, packed.data, NULL, NULL, y, error);
		keep_best(best, 2.0 * PRODUCT * PRODUCT * PRODUCT, start);
	}
	return status;
}

static int measure_bf16(double *best, struct smalti_error *error)
{
	const int64_t elements = (int64_t)PRODUCT * PRODUCT;
	const int64_t bytes = smalti_matmul_packed_bytes(PRODUCT, PRODUCT, SMALTI_BF16, error);
	void *x = smalti_calloc(elements, sizeof(uint16_t), error);
	void *y = smalti_calloc(elements, sizeof(uint16_t), error);
	void *packed = bytes < 0 ? NULL : smalti_aligned_alloc(bytes, 1, error);
	const int status =
	    x && y && packed ? run_products(best, x, (struct smalti_packed){packed, bytes}, y, error) : -1;
	free(x);
	free(y);
	free(packed);
	return status;
}

int smalti_roofline_measure(struct smalti_roofline *roofline, struct smalti_error *error)
{
	*roofline = (struct smalti_roofline){0};
	const int64_t floats = (int64_t)PIECES * PIECE_FLOATS;
	struct smalti_pool *pool = smalti_pool_new(0, error);
	if (!pool)
		return -1;
	float *memory = smalti_pool_acquire(pool, floats * (int64_t)sizeof(float)); /* as tiles have it */
	if (!memory) {
		smalti_pool_free(pool);
		return smalti_fail(error, SMALTI_ENOMEM, "%lld floats to measure memory with",
				   (long long)floats);
	}
	memset(memory, 0, (size_t)floats * sizeof(float));
	measure_fma(&roofline->f32);
	measure_memory(roofline, memory);
	smalti_pool_free(pool);
	return smalti_isa_bf16() ? measure_bf16(&roofline->bf16, error) : 0;
}
