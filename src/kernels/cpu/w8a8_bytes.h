/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rows8.h"
#include "kernels/cpu/transpose.h"

/* What products of integers are of where the CPU adds up four products of bytes at once, one of which is
 * unsigned: the weights plus 128 are. Σ x·w is Σ x·(w + 128) − 128·Σ x, modulo 2^32. Σ x is at the end of a
 * row's memory. tests/test_w8a8_bytes.c runs this text on any CPU. */
enum { GROUP = 4 };

typedef int8_t integer;

/* Adds to each sum four products. */
INLINE ivec add_products(ivec sums, ivec weights, ivec values)
{
#if defined(__AVX512VNNI__)
	return (ivec)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)weights, (__m512i)values);
#else
	typedef int8_t bytes __attribute__((vector_size(VEC_BYTES)));
	typedef uint8_t positive __attribute__((vector_size(VEC_BYTES)));
	for (int i = 0; i < VEC_BYTES; i++)
		sums[i / GROUP] += ((positive)weights)[i] * ((bytes)values)[i];
	return sums;
#endif
}

/* Writes the sum of a rounded row of x behind it. */
INLINE void complete_row(integer *x, int64_t row_bytes, int32_t sum)
{
	memcpy(x + row_bytes - (int64_t)sizeof(sum), &sum, sizeof(sum));
}

/* Returns what the sums of a complete row begin with. */
INLINE int32_t first_sum(const char *x, int64_t row_bytes)
{
	int32_t sum;
	memcpy(&sum, x + row_bytes - (int64_t)sizeof(sum), sizeof(sum));
	return (int32_t)(-128 * (uint32_t)sum);
}

/* Lays out SMALTI_ROWS8_PAD inputs of OUTPUTS rows as fours, plus 128. */
INLINE void lay_out_inputs(const char *from, int64_t stride, integer *to)
{
	UNROLL
	for (int v = 0; v < VECTORS; v++) {
		vec rows[GROUP];
		UNROLL
		for (int i = 0; i < GROUP; i++)
			rows[i] = gather_places(from + (v * LANES + i) * stride, GROUP * stride);
		TRANSPOSE(rows, GROUP, FLOATS_FROM(0), FLOATS_FROM(2));
		UNROLL
		for (int i = 0; i < GROUP; i++) {
			const ivec positive = (ivec)rows[i] ^ (int32_t)0x80808080;
			memcpy(to + (i * OUTPUTS + v * LANES) * GROUP, &positive, sizeof(positive));
		}
	}
}
