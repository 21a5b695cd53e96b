/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/int8.h"
#include "kernels/cpu/vector.h"

/* Products of integers for w8a8_tiles.h where the CPU does not multiply bytes: rows of x are widened to 16
 * bits once, those of the weights in registers, where pairs of products are added to sums of 32 bits: 127² ·
 * 2 fits. */
enum { ROWS = 4, OUTPUTS = 3, STEP = VEC_BYTES / 2 /* inputs at a time */ };

typedef int16_t integer;
typedef int16_t x_vector __attribute__((vector_size(VEC_BYTES)));
typedef x_vector weight_vector;

/* Adds to each sum a pair of products. */
INLINE ivec add_products(ivec sums, weight_vector w, x_vector x)
{
#if defined(__AVX512F__)
	return sums + (ivec)_mm512_madd_epi16((__m512i)w, (__m512i)x);
#elif defined(__AVX2__)
	return sums + (ivec)_mm256_madd_epi16((__m256i)w, (__m256i)x);
#elif defined(__SSE2__)
	return sums + (ivec)_mm_madd_epi16((__m128i)w, (__m128i)x);
#else
	for (int i = 0; i < LANES; i++)
		sums[i] += w[2 * i] * x[2 * i] + w[2 * i + 1] * x[2 * i + 1];
	return sums;
#endif
}

/* Returns weights; what is read behind the last `count` of them meets zeros of x. */
INLINE weight_vector load_weights(const int8_t *from, int64_t count)
{
	typedef int8_t bytes __attribute__((vector_size(VEC_BYTES / 2)));
	bytes integers;
	(void)count;
	memcpy(&integers, from, sizeof(integers));
	return __builtin_convertvector(integers, weight_vector);
}

/* Returns the bytes of a row of x, with zeros up to whole vectors. */
INLINE int64_t x_row_bytes(int64_t in)
{
	return smalti_round_up(in, 2 * SMALTI_INT8_PAD) * (int64_t)sizeof(integer);
}

INLINE int32_t sum_of(ivec lanes, const integer *x, int64_t in)
{
	int32_t sum = 0;
	(void)x, (void)in;
	for (int i = 0; i < LANES; i++)
		sum += lanes[i];
	return sum;
}

/* Completes a rounded row of x, which needs nothing more. */
INLINE void complete_row(integer *x, int64_t in)
{
	(void)x, (void)in;
}
