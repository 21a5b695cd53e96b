/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/int8.h"
#include "kernels/cpu/transpose.h"

/* Sums of products of integers where the CPU does not multiply bytes: pairs of products of 16 bits are added
 * to sums of 32 bits, where 127² · 2 fits. A vector holds LANES outputs, and a tile of ROWS × OUTPUTS sums
 * stays in registers. Rows of x are widened once; OUTPUTS outputs' weights, a piece of the inputs at a time,
 * are widened and transposed into the first cache, and meet all rows. */
enum {
	DEPTH = 512,              /* inputs of a piece */
	INPUTS = SMALTI_INT8_PAD, /* that are widened at a time: rows are a multiple of it */
	WIDENED = INPUTS * OUTPUTS
};

typedef int16_t integer;
typedef int16_t pairs __attribute__((vector_size(VEC_BYTES)));

/* Adds to each sum a pair of products. */
INLINE ivec add_products(ivec sums, pairs w, pairs x)
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

/* Returns the bytes of a row of x, with zeros up to whole pairs of weights. */
INLINE int64_t x_row_bytes(int64_t in)
{
	return smalti_round_up(in, 2 * SMALTI_INT8_PAD) * (int64_t)sizeof(integer);
}

/* Completes a rounded row of x, which needs nothing more. */
INLINE void complete_row(integer *x, int64_t in)
{
	(void)x, (void)in;
}

/* A piece of the weights of OUTPUTS outputs. */
struct piece {
	const int8_t *from;
	int64_t stride;         /* from an output to the next */
	int64_t outputs, depth; /* depth: inputs, a multiple of INPUTS */
};

/* Widens INPUTS inputs of OUTPUTS rows to [INPUTS / 2, OUTPUTS] pairs. */
INLINE void widen_inputs(const char *from, int64_t stride, integer *to)
{
	typedef int8_t bytes __attribute__((vector_size(VEC_BYTES / 2)));
	halves rows[INPUTS / 2];
	transpose_halves(from, stride, rows);
	UNROLL
	for (int i = 0; i < WIDENED; i += 2 * LANES) {
		bytes narrow;
		memcpy(&narrow, (const char *)rows + i, sizeof(narrow));
		const pairs wide = __builtin_convertvector(narrow, pairs);
		memcpy(to + i, &wide, sizeof(wide));
	}
}

/* Widens a piece to [depth / 2, OUTPUTS] pairs; repeats the last output up to OUTPUTS. */
INLINE void widen_piece(const struct piece *piece, integer *to)
{
	char staged[OUTPUTS * LINE_BYTES] __attribute__((aligned(LINE_BYTES)));
	for (int64_t k = 0; k < piece->depth; k += INPUTS, to += WIDENED) {
		const char *from = (const char *)piece->from + k;
		if (piece->outputs == OUTPUTS) {
			widen_inputs(from, piece->stride, to);
			continue;
		}
		stage(from, piece->stride, piece->outputs, INPUTS, staged);
		widen_inputs(staged, LINE_BYTES, to);
	}
}

/* Prefetches outputs first … end − 1 of a piece. */
INLINE void prefetch(const struct piece *piece, int64_t first, int64_t end)
{
	for (; first < end; first++)
		for (int64_t at = 0; at < piece->depth; at += LINE_BYTES)
			__builtin_prefetch(piece->from + first * piece->stride + at);
}

/* Writes the first `count` sums, or with `add` adds them. */
INLINE void put_sums(ivec found, bool add, int64_t count, int32_t *sums)
{
	ivec old;
	if (count == LANES) {
		if (add) {
			memcpy(&old, sums, sizeof(old));
			found += old;
		}
		memcpy(sums, &found, sizeof(found));
	} else {
		for (int64_t i = 0; i < count; i++)
			sums[i] = found[i] + (add ? sums[i] : 0);
	}
}

/* Where sums are written, or with `add` added to; `stride` from a row to the next. */
struct target {
	int32_t *sums;
	int64_t stride, outputs;
	bool add;
};

INLINE void tile(const int rows, int64_t depth, const char *x, int64_t x_stride, const integer *weights,
		 const struct target *to, int64_t row)
{
	ivec sum[ROWS][VECTORS] = {0};
	x += row * x_stride;
	UNROLL
	for (int r = 0; r < rows; r++) {
		UNROLL
		for (int v = 0; v < VECTORS; v++)
			sum[r][v] = (ivec)vec_barrier((vec)sum[r][v]);
	}
	for (int64_t k = 0; k < depth; k += 2, weights += 2 * OUTPUTS) {
		pairs right[VECTORS];
		memcpy(right, weights, sizeof(right));
		UNROLL
		for (int r = 0; r < rows; r++) {
			int32_t pair;
			memcpy(&pair, x + r * x_stride + k * (int64_t)sizeof(integer), sizeof(pair));
			const pairs left = (pairs)((ivec){0} + pair);
			UNROLL
			for (int v = 0; v < VECTORS; v++)
				sum[r][v] = add_products(sum[r][v], right[v], left);
		}
	}
	UNROLL
	for (int r = 0; r < rows; r++) {
		UNROLL
		for (int v = 0; v < VECTORS; v++)
			put_sums(sum[r][v], to->add, smalti_min(to->outputs - v * LANES, LANES),
				 to->sums + (row + r) * to->stride + v * LANES);
	}
}

static void tile_of(int64_t rows, int64_t depth, const char *x, int64_t x_stride, const integer *weights,
		    const struct target *to, int64_t row)
{
#define TILE(count)                                                                                          \
	case count:                                                                                          \
		tile(count, depth, x, x_stride, weights, to, row);                                           \
		break;
	switch (rows) {
		EACH_ROWS(TILE)
	}
#undef TILE
}

/* Multiplies a widened piece with all rows, in groups of nearly equal size, and prefetches the next one. */
INLINE void multiply_piece(int64_t rows, int64_t depth, const char *x, int64_t x_stride,
			   const integer *weights, const struct piece *next, const struct target *to)
{
	const int64_t groups = (rows + ROWS - 1) / ROWS;
	for (int64_t group = 0, row = 0; group < groups; group++) {
		const int64_t end = rows * (group + 1) / groups;
		prefetch(next, OUTPUTS * group / groups, OUTPUTS * (group + 1) / groups);
		tile_of(end - row, depth, x, x_stride, weights, to, row);
		row = end;
	}
}

INLINE void all_sums(int64_t rows, int64_t in, int64_t out, const void *x, const int8_t *weights,
		     int32_t *sums)
{
	integer wide[DEPTH * OUTPUTS] __attribute__((aligned(64)));
	const int64_t inputs = smalti_round_up(in, INPUTS);
	struct piece piece = {.from = weights, .stride = smalti_int8_stride(in)};
	for (int64_t o = 0; o < out; o += OUTPUTS) {
		piece.outputs = smalti_min(OUTPUTS, out - o);
		for (int64_t k = 0; k < inputs; k += DEPTH) {
			const int64_t depth = piece.depth = smalti_min(DEPTH, inputs - k);
			const struct target to = {sums + o, out, piece.outputs, k > 0};
			widen_piece(&piece, wide);
			piece.from = k + depth < inputs
					 ? piece.from + depth
					 : weights + smalti_min(o + OUTPUTS, out - 1) * piece.stride;
			multiply_piece(rows, depth, (const char *)x + k * (int64_t)sizeof(integer),
				       x_row_bytes(in), wide, &piece, &to);
		}
	}
}
