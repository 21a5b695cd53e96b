/* SPDX-License-Identifier: Apache-2.0 */
/* AMX's tiles as its manual describes them, in plain C. A row of sums, or of weights, has LANES of 4 bytes.
 */
#include "base/base.h"
#include "kernels/cpu/vector.h"

#define SMALTI_EMULATED_AMX
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbsud
#define TILES_FENCE() ((void)0)
#define _tile_zero    zero_tile
#define _tile_loadd   load_tile
#define _tile_stored  store_tile
#define _tile_dpbsud  multiply_bytes

enum { TILE_ROWS = 16, ROW = 64, GROUPS = ROW / 4 };
static int8_t emulated[8][TILE_ROWS][ROW];
static bool open;
static int row_bytes(int tile);

static void tiles_begin(void)
{
	open = true;
}

static void tiles_end(void)
{
	open = false;
}

static void zero_tile(int tile)
{
	memset(emulated[tile], 0, sizeof(emulated[tile]));
}

static void load_tile(int tile, const void *from, int64_t stride)
{
	for (int row = 0; open && row < TILE_ROWS; row++)
		memcpy(emulated[tile][row], (const char *)from + row * stride, (size_t)row_bytes(tile));
}

static void store_tile(int tile, void *to, int64_t stride)
{
	for (int row = 0; open && row < TILE_ROWS; row++)
		memcpy((char *)to + row * stride, emulated[tile][row], (size_t)row_bytes(tile));
}

/* Adds products of signed bytes of `a` and unsigned ones of `b`. */
static void multiply_bytes(int to, int a, int b)
{
	for (int row = 0; row < TILE_ROWS; row++)
		for (int column = 0; column < row_bytes(to) / 4; column++) {
			int32_t sum;
			memcpy(&sum, &emulated[to][row][4 * column], sizeof(sum));
			for (int group = 0; group < GROUPS; group++)
				for (int i = 0; i < 4; i++)
					sum += emulated[a][row][4 * group + i] *
					       (uint8_t)emulated[b][group][4 * column + i];
			memcpy(&emulated[to][row][4 * column], &sum, sizeof(sum));
		}
}

#include "w8a8_case.h"

/* Returns the bytes of a row: all for rows of x, which are tiles 4 and 5. */
static int row_bytes(int tile)
{
	return tile == 4 || tile == 5 ? ROW : 4 * LANES;
}

static const struct test tests[] = {{"sums are exact", sums_are_exact}};

TEST_MAIN("products of bytes by AMX", tests)
