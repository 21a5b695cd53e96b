/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rows8.h"
#include "kernels/cpu/transpose.h"

/* What products of integers are of where the CPU does not multiply bytes: pairs of products of 16 bits are
 * added to sums of 32 bits, where 127² · 2 fits. Rows of x are widened once, weights when they are laid out.
 */
enum { GROUP = 2 };

typedef int16_t integer;
typedef int16_t pairs __attribute__((vector_size(VEC_BYTES)));

/* Adds to each sum a pair of products. */
INLINE ivec add_products(ivec sums, ivec weights, ivec values)
{
	const pairs w = (pairs)weights, x = (pairs)values;
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

/* Completes a rounded row of x, which needs nothing more. */
INLINE void complete_row(integer *x, int64_t row_bytes, int32_t sum)
{
	(void)x, (void)row_bytes, (void)sum;
}

/* Returns what the sums of a complete row begin with. */
INLINE int32_t first_sum(const char *x, int64_t row_bytes)
{
	(void)x, (void)row_bytes;
	return 0;
}

/* Widens SMALTI_ROWS8_PAD inputs of OUTPUTS rows, and makes them pairs. */
INLINE void lay_out_inputs(const char *from, int64_t stride, integer *to)
{
	typedef int8_t bytes __attribute__((vector_size(VEC_BYTES / 2)));
	halves rows[SMALTI_ROWS8_PAD / 2];
	transpose_halves(from, stride, rows);
	UNROLL
	for (int i = 0; i < SMALTI_ROWS8_PAD * OUTPUTS; i += 2 * LANES) {
		bytes narrow;
		memcpy(&narrow, (const char *)rows + i, sizeof(narrow));
		const pairs wide = __builtin_convertvector(narrow, pairs);
		memcpy(to + i, &wide, sizeof(wide));
	}
}
