/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/matmul_w8a8.h"

/* Sums of products of integers. A lane of a vector is an output and takes GROUP inputs at a time
 * (cpu/w8a8_bytes.h, cpu/w8a8_pairs.h). OUTPUTS outputs' weights, a piece of the inputs at a time, are laid
 * out for that in the first cache, once for all rows, and met by these in tiles of sums that stay in
 * registers (cpu/w8a8_lanes.h, cpu/w8a8_amx.h). */
#if defined(__AVX512VNNI__) || defined(SMALTI_W8A8_BYTES)
#include "kernels/cpu/w8a8_bytes.h"
#else
#include "kernels/cpu/w8a8_pairs.h"
#endif

enum {
	PIECE_BYTES = 1 << 14,     /* of weights that are laid out */
	INPUTS = SMALTI_ROWS8_PAD, /* that are laid out at a time: rows are a multiple of it */
	DEPTH = PIECE_BYTES / OUTPUTS / (int)sizeof(integer) /* inputs of a piece */
};

/* Returns the bytes of a row of x: its integers, zeros up to whole groups of weights, and a cache line, so
 * that rows do not fall into the same places of the cache. */
INLINE int64_t x_row_bytes(int64_t in)
{
	return smalti_round_up(in, INPUTS) * (int64_t)sizeof(integer) + SMALTI_W8A8_ROW_END;
}

/* A piece of the weights of OUTPUTS outputs. */
struct piece {
	const int8_t *from;
	int64_t stride;         /* from an output to the next */
	int64_t outputs, depth; /* depth: inputs, a multiple of INPUTS */
};

/* Lays a piece out as [depth / GROUP, OUTPUTS] groups; repeats the last output up to OUTPUTS. */
INLINE void lay_out_piece(const struct piece *piece, integer *to)
{
	char staged[OUTPUTS * LINE_BYTES] __attribute__((aligned(LINE_BYTES)));
	for (int64_t k = 0; k < piece->depth; k += INPUTS, to += INPUTS * OUTPUTS) {
		const char *from = (const char *)piece->from + k;
		if (piece->outputs == OUTPUTS) {
			lay_out_inputs(from, piece->stride, to);
			continue;
		}
		stage(from, piece->stride, piece->outputs, INPUTS, staged);
		lay_out_inputs(staged, LINE_BYTES, to);
	}
}

/* Prefetches outputs first … end − 1 of a piece. */
INLINE void prefetch(const struct piece *piece, int64_t first, int64_t end)
{
	for (; first < end; first++)
		for (int64_t at = 0; at < piece->depth; at += LINE_BYTES)
			__builtin_prefetch(piece->from + first * piece->stride + at);
}

/* Rows of x, whose inputs from byte `at` on meet a piece. */
struct rows {
	const char *x;
	int64_t count, stride, at;
};

/* Where sums are written, or with `add` added to; `stride` from a row to the next. */
struct target {
	int32_t *sums;
	int64_t stride, outputs;
	bool add;
};

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

/* Puts the sums of a row. */
INLINE void put_row(const ivec found[VECTORS], const struct target *to, int64_t row)
{
	UNROLL
	for (int v = 0; v < VECTORS; v++)
		put_sums(found[v], to->add, smalti_min(to->outputs - v * LANES, LANES),
			 to->sums + row * to->stride + v * LANES);
}

#if defined(__AMX_INT8__) || defined(SMALTI_EMULATED_AMX)
#include "kernels/cpu/w8a8_amx.h"
#else
#include "kernels/cpu/w8a8_lanes.h"
#endif

INLINE void all_sums(int64_t count, int64_t in, int64_t out, const void *x, const int8_t *weights,
		     int32_t *sums)
{
	integer laid_out[DEPTH * OUTPUTS] __attribute__((aligned(64)));
	const int64_t inputs = smalti_round_up(in, INPUTS);
	struct rows rows = {x, count, x_row_bytes(in), 0};
	tiles_begin();
	struct piece piece = {.from = weights, .stride = smalti_rows8_stride(in)};
	for (int64_t o = 0; o < out; o += OUTPUTS) {
		piece.outputs = smalti_min(OUTPUTS, out - o);
		for (int64_t k = 0; k < inputs; k += DEPTH) {
			const int64_t depth = piece.depth = smalti_min(DEPTH, inputs - k);
			const struct target to = {sums + o, out, piece.outputs, k > 0};
			lay_out_piece(&piece, laid_out);
			piece.from = k + depth < inputs
					 ? piece.from + depth
					 : weights + smalti_min(o + OUTPUTS, out - 1) * piece.stride;
			rows.at = k * (int64_t)sizeof(integer);
			multiply_piece(depth, &rows, laid_out, &piece, &to);
		}
	}
	tiles_end();
}
