/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Products of a piece by vectors (cpu/w8a8_tiles.h): a tile of ROWS × OUTPUTS sums stays in registers. */
INLINE void tile(const int count, int64_t depth, const struct rows *rows, const integer *weights,
		 const struct target *to, int64_t row)
{
	ivec sum[ROWS][VECTORS], found[ROWS][VECTORS];
	const char *x = rows->x + row * rows->stride;
	UNROLL
	for (int r = 0; r < count; r++) {
		const int32_t first = to->add ? 0 : first_sum(x + r * rows->stride, rows->stride);
		UNROLL
		for (int v = 0; v < VECTORS; v++)
			sum[r][v] = (ivec)vec_barrier((vec)((ivec){0} + first));
	}
	x += rows->at;
	for (int64_t k = 0; k < depth; k += GROUP, weights += GROUP * OUTPUTS) {
		ivec right[VECTORS];
		memcpy(right, weights, sizeof(right));
		UNROLL
		for (int r = 0; r < count; r++) {
			int32_t group;
			memcpy(&group, x + r * rows->stride + k * (int64_t)sizeof(integer), sizeof(group));
			const ivec left = (ivec){0} + group;
			UNROLL
			for (int v = 0; v < VECTORS; v++)
				sum[r][v] = add_products(sum[r][v], right[v], left);
		}
	}
	UNROLL
	for (int r = 0; r < count; r++)
		memcpy(found[r], sum[r], sizeof(found[r]));
	for (int r = 0; r < count; r++)
		put_row(found[r], to, row + r);
}

static void tile_of(int64_t count, int64_t depth, const struct rows *rows, const integer *weights,
		    const struct target *to, int64_t row)
{
#define TILE(number)                                                                                         \
	case number:                                                                                         \
		tile(number, depth, rows, weights, to, row);                                                 \
		break;
	switch (count) {
		EACH_ROWS(TILE)
	}
#undef TILE
}

/* Multiplies a piece with all rows, in groups of nearly equal size, and prefetches the next one. */
INLINE void multiply_piece(int64_t depth, const struct rows *rows, const integer *weights,
			   const struct piece *next, const struct target *to)
{
	const int64_t groups = (rows->count + ROWS - 1) / ROWS;
	for (int64_t group = 0, row = 0; group < groups; group++) {
		const int64_t end = rows->count * (group + 1) / groups;
		prefetch(next, OUTPUTS * group / groups, OUTPUTS * (group + 1) / groups);
		tile_of(end - row, depth, rows, weights, to, row);
		row = end;
	}
}

INLINE void tiles_begin(void)
{
}

INLINE void tiles_end(void)
{
}
