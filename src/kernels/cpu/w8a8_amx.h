/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/cpu/amx.h"

/* Products of a piece by AMX's tiles (cpu/w8a8_tiles.h): of signed bytes of x and unsigned ones of the
 * weights, which are laid out as its instructions want them. tests/test_w8a8_amx.c runs this text on any CPU.
 */
enum { TILE_INPUTS = TILE * GROUP, TILES = 2 /* of rows at a time */ };

/* Multiplies `tiles` tiles of rows with a piece, and puts the sums of the rows that there are. Tiles 0 to 3
 * hold sums, 4 and 5 rows, 6 and 7 weights of LANES outputs each. Behind a row's inputs there are zeros, so
 * what is behind the piece counts for nothing. */
INLINE void multiply_tiles(const int tiles, int64_t depth, const struct rows *rows, const integer *weights,
			   const struct target *to, int64_t row)
{
	int32_t sums[TILES * TILE][OUTPUTS] __attribute__((aligned(LINE_BYTES)));
	const char *x = rows->x + row * rows->stride, *upper = x + rows->at,
		   *lower = upper + TILE * rows->stride;
	TILES_FENCE();
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	for (int64_t k = 0; k < depth; k += TILE_INPUTS, weights += TILE_INPUTS * OUTPUTS) {
		_tile_loadd(6, weights, GROUP * OUTPUTS);
		_tile_loadd(7, weights + GROUP * LANES, GROUP * OUTPUTS);
		_tile_loadd(4, upper + k, rows->stride);
		_tile_dpbsud(0, 4, 6);
		_tile_dpbsud(1, 4, 7);
		if (tiles > 1) {
			_tile_loadd(5, lower + k, rows->stride);
			_tile_dpbsud(2, 5, 6);
			_tile_dpbsud(3, 5, 7);
		}
	}
	_tile_stored(0, &sums[0][0], sizeof(sums[0]));
	_tile_stored(1, &sums[0][LANES], sizeof(sums[0]));
	if (tiles > 1) {
		_tile_stored(2, &sums[TILE][0], sizeof(sums[0]));
		_tile_stored(3, &sums[TILE][LANES], sizeof(sums[0]));
	}
	TILES_FENCE();
	for (int64_t r = 0; r < smalti_min(tiles * TILE, rows->count - row); r++) {
		ivec found[VECTORS];
		const int32_t first = to->add ? 0 : first_sum(x + r * rows->stride, rows->stride);
		memcpy(found, sums[r], sizeof(found));
		UNROLL
		for (int v = 0; v < VECTORS; v++)
			found[v] += first;
		put_row(found, to, row + r);
	}
}

/* Multiplies a piece with all rows, and prefetches the next one. */
INLINE void multiply_piece(int64_t depth, const struct rows *rows, const integer *weights,
			   const struct piece *next, const struct target *to)
{
	for (int64_t row = 0; row < rows->count; row += TILES * TILE) {
		const int64_t end = smalti_min(row + TILES * TILE, rows->count);
		prefetch(next, OUTPUTS * row / rows->count, OUTPUTS * end / rows->count);
		if (end - row > TILE)
			multiply_tiles(2, depth, rows, weights, to, row);
		else
			multiply_tiles(1, depth, rows, weights, to, row);
	}
}
