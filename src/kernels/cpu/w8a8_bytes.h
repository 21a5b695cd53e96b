/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/int8.h"
#include "kernels/cpu/vector.h"

/* Sums of products of integers where the CPU adds up four products of bytes at once, one of which is
 * unsigned: the weights plus 128 are. Σ x·w is Σ x·(w + 128) − 128·Σ x, modulo 2^32. A row of x is bytes; Σ x
 * is at the end of its memory. Both operands lie along the inputs. A tile of ROWS × OUTPUTS vectors of sums
 * stays in registers, and their lanes are added at the end. tests/test_w8a8_bytes.c runs this text on any
 * CPU. */
enum { ROWS = 6, OUTPUTS = 4, STEP = VEC_BYTES /* inputs at a time */ };

typedef int8_t integer;
typedef int8_t x_vector __attribute__((vector_size(VEC_BYTES)));
typedef uint8_t weight_vector __attribute__((vector_size(VEC_BYTES)));

/* Adds to each sum the products of its four bytes. */
INLINE ivec add_products(ivec sums, weight_vector w, x_vector x)
{
#if defined(__AVX512VNNI__)
	return (ivec)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)w, (__m512i)x);
#else
	for (int i = 0; i < VEC_BYTES; i++)
		sums[i / 4] += w[i] * x[i];
	return sums;
#endif
}

/* Returns weights plus 128, and zeros from `count` on. */
INLINE weight_vector load_weights(const int8_t *from, int64_t count)
{
	weight_vector w = {0};
	if (count >= VEC_BYTES) {
		memcpy(&w, from, sizeof(w));
		return w ^ 128;
	}
	for (int64_t i = 0; i < count; i++)
		w[i] = (uint8_t)from[i] ^ 128;
	return w;
}

/* Returns the bytes of a row of x, a multiple of 64 that also holds whole vectors of it. */
INLINE int64_t x_row_bytes(int64_t in)
{
	return 2 * smalti_round_up(in, 2 * SMALTI_INT8_PAD);
}

/* Returns where the sum of a row of x is. */
INLINE int64_t x_sum_at(int64_t in)
{
	return x_row_bytes(in) - (int64_t)sizeof(int32_t);
}

/* Returns Σ x·w of the lanes of Σ x·(w + 128). */
INLINE int32_t sum_of(ivec lanes, const integer *x, int64_t in)
{
	int32_t of_x;
	uint32_t sum = 0;
	memcpy(&of_x, x + x_sum_at(in), sizeof(of_x));
	for (int i = 0; i < LANES; i++)
		sum += (uint32_t)lanes[i];
	return (int32_t)(sum - 128 * (uint32_t)of_x);
}

/* Writes the sum of a row of x. */
INLINE void complete_row(integer *x, int64_t in)
{
	int32_t sum = 0;
	for (int64_t k = 0; k < in; k++)
		sum += x[k];
	memcpy(x + x_sum_at(in), &sum, sizeof(sum));
}

INLINE const integer *row_of(const void *x, int64_t row, int64_t in)
{
	return (const integer *)((const char *)x + row * x_row_bytes(in));
}

/* Computes a tile of sums. */
INLINE void tile(const int rows, const int outputs, int64_t in, const void *x, const int8_t *weights,
		 int64_t out, int32_t *sums)
{
	ivec sum[ROWS][OUTPUTS] = {0};
	for (int64_t k = 0; k < in; k += STEP) {
		weight_vector right[OUTPUTS];
		UNROLL
		for (int o = 0; o < outputs; o++)
			right[o] = load_weights(weights + o * smalti_int8_stride(in) + k, in - k);
		UNROLL
		for (int r = 0; r < rows; r++) {
			x_vector left;
			memcpy(&left, row_of(x, r, in) + k, sizeof(left));
			UNROLL
			for (int o = 0; o < outputs; o++)
				sum[r][o] = add_products(sum[r][o], right[o], left);
		}
	}
	for (int r = 0; r < rows; r++)
		for (int o = 0; o < outputs; o++)
			sums[r * out + o] = sum_of(sum[r][o], row_of(x, r, in), in);
}

INLINE void tiles_of(const int outputs, int64_t rows, int64_t in, const void *x, const int8_t *weights,
		     int64_t out, int32_t *sums)
{
	int64_t r = 0;
	for (; r + ROWS <= rows; r += ROWS)
		tile(ROWS, outputs, in, row_of(x, r, in), weights, out, sums + r * out);
	for (; r < rows; r++)
		tile(1, outputs, in, row_of(x, r, in), weights, out, sums + r * out);
}

INLINE void all_sums(int64_t rows, int64_t in, int64_t out, const void *x, const int8_t *weights,
		     int32_t *sums)
{
	int64_t o = 0;
	for (; o + OUTPUTS <= out; o += OUTPUTS)
		tiles_of(OUTPUTS, rows, in, x, weights + o * smalti_int8_stride(in), out, sums + o);
	for (; o < out; o++)
		tiles_of(1, rows, in, x, weights + o * smalti_int8_stride(in), out, sums + o);
}
