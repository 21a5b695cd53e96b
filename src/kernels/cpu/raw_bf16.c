/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/raw_parts.h"
#include "kernels/cpu/tiles.h"

/* As in raw.c, but zᵀ = W·xᵀ in tiles of bf16 operands. Rows of W are already rows of tiles and are only
 * rounded; x, which is smaller, is packed in pairs. */

/* Outputs and inputs of rounded weights at a time: as many as the first cache holds beside what passes
 * through. */
enum { OUTPUTS = 2 * TILE, DEPTH = 512 };
enum {
	PIECE = 4096,    /* inputs in a piece, at most */
	BLOCK = 1 << 20, /* bytes in a block of x, at most: half of a second cache */
	MANY = 256       /* rows in a block, at most: of more, converting weights costs nothing */
};

/* The cut of a product: inputs into pieces, which depend on the parts of x, and rows into blocks. */
struct cut {
	int64_t depth;    /* inputs in each piece but the last */
	int64_t rows;     /* in each block but the last */
	int64_t z_stride; /* an odd number of cache lines */
};

struct work {
	float *x;       /* tiles b [tile of rows, step of the piece] */
	float *weights; /* tiles a [tile of outputs, step] */
	float *sums;    /* tiles c [tile of rows, tile of outputs] */
	float *z;       /* x·Wᵀ of a block [rows, z_stride] */
};

static struct cut cut_of(const struct smalti_matmul *m, const struct smalti_raw_columns *x, int x_parts)
{
	struct cut cut;
	const int64_t in = widest(x, x_parts);
	cut.depth = smalti_round_up(parts(in, parts(in, PIECE)), TILE_TERMS);
	int64_t blocks = parts(m->rows, smalti_min(BLOCK / 2 / cut.depth, MANY) / TILE * TILE);
	cut.rows = smalti_round_up(parts(m->rows, blocks), TILE);
	cut.z_stride = (parts(m->out, LINE) | 1) * LINE;
	return cut;
}

static int64_t lay_out(const struct cut *cut, float *scratch, struct work *work)
{
	const struct part all[] = {
	    {&work->x, cut->rows * cut->depth / 2},
	    {&work->weights, OUTPUTS * DEPTH / 2},
	    {&work->sums, cut->rows * OUTPUTS},
	    {&work->z, cut->rows * cut->z_stride},
	};
	return workspace_layout(scratch, all, sizeof(all) / sizeof(all[0]));
}

int64_t FOR_ISA(smalti_matmul_raw_bf16_scratch)(const struct smalti_matmul *matmul,
						const struct smalti_raw_columns *x, int x_parts)
{
	const struct cut cut = cut_of(matmul, x, x_parts);
	struct work work;
	return lay_out(&cut, NULL, &work);
}

/* Packs a piece of a block of rows, zeros up to whole tiles. */
static void pack_rows(int64_t x_stride, const uint16_t *x, int64_t rows, int64_t depth, float *packed)
{
	for (int64_t row = 0; row < rows; row += TILE)
		for (int64_t k = 0; k < depth; k += TILE_TERMS, packed += TILE_FLOATS) {
			vec terms[TILE] = {0};
			for (int64_t i = 0; i < smalti_min(rows - row, TILE); i++)
				terms[i] = (vec)_mm512_maskz_loadu_epi16(first_of(depth - k),
									 x + (row + i) * x_stride + k);
			vec_transpose(terms);
			UNROLL
			for (int i = 0; i < TILE; i++)
				vec_store(packed + i * TILE, terms[i]);
		}
}

/* Packs weights of `outputs` outputs, with the last repeated up to a whole tile, and prefetches those at
 * `next`, at equal distances. */
INLINE void pack_panel(enum smalti_dtype dtype, const struct panel *panel, const char *next, int64_t outputs,
		       int64_t depth, float *to)
{
	const int64_t size = smalti_dtype_bytes(dtype), steps = parts(depth, TILE_TERMS);
	for (int64_t o = 0; o < smalti_round_up(outputs, TILE); o++) {
		const int64_t at = smalti_min(o, outputs - 1) * panel->stride;
		float *row = to + o / TILE * steps * TILE_FLOATS + o % TILE * TILE;
		for (int64_t k = 0; k < depth; k += TILE_TERMS, row += TILE_FLOATS) {
			__builtin_prefetch(next + at + k * size, 0, 2);
			if (dtype == SMALTI_F32)
				__builtin_prefetch(next + at + k * size + 64, 0, 2);
			vec_store(row, read_rounded(dtype, panel->from + at + k * size, depth - k));
		}
	}
}

/* Computes z[rows, tile of outputs] (+)= a tile of sums, transposed; z has room for whole tiles. */
static void add_tile(int64_t rows, const float *sums, bool first, int64_t z_stride, float *z)
{
	vec turned[TILE];
	UNROLL
	for (int i = 0; i < TILE; i++)
		turned[i] = vec_load(sums + i * TILE);
	vec_transpose(turned);
	for (int64_t row = 0; row < smalti_min(rows, TILE); row++, z += z_stride)
		vec_store(z, first ? turned[row] : vec_load(z) + turned[row]);
}

/* Multiplies all rows of the block with one panel. */
INLINE void multiply_panel(const int output_tiles, const bool add, const struct work *work, int64_t rows,
			   int64_t x_steps, int64_t step, int64_t terms)
{
	for (int64_t tile = 0; tile < parts(rows, TILE); tile += 2) {
		const struct tile_product product = {
		    .terms = terms,
		    .a = work->weights,
		    .a_row = parts(terms, TILE_TERMS),
		    .a_step = 1,
		    .b = work->x + (tile * x_steps + step) * TILE_FLOATS,
		    .b_column = x_steps,
		    .b_step = 1,
		    .c = work->sums + tile * 2 * TILE_FLOATS,
		    .c_row = 1,
		    .c_column = 2,
		};
		if (tile + 1 < parts(rows, TILE))
			tiles_multiply(output_tiles, 2, add, &product);
		else
			tiles_multiply(output_tiles, 1, add, &product);
	}
}

static void multiply_any(int64_t output_tiles, bool add, const struct work *work, int64_t rows,
			 int64_t x_steps, int64_t step, int64_t terms)
{
	if (output_tiles > 1 && add)
		multiply_panel(2, true, work, rows, x_steps, step, terms);
	else if (output_tiles > 1)
		multiply_panel(2, false, work, rows, x_steps, step, terms);
	else if (add)
		multiply_panel(1, true, work, rows, x_steps, step, terms);
	else
		multiply_panel(1, false, work, rows, x_steps, step, terms);
}

/* Multiplies `piece` inputs, from `first` of all of them, of a block of rows. */
static void multiply_piece(const struct smalti_matmul *m, const struct smalti_raw_weight *weight,
			   const struct cut *cut, const struct work *work, int64_t rows, int64_t first,
			   int64_t piece)
{
	const int64_t size = smalti_dtype_bytes(weight->dtype), x_steps = parts(piece, TILE_TERMS);
	for (int64_t out = 0; out < m->out; out += OUTPUTS) {
		const int64_t outputs = smalti_min(m->out - out, OUTPUTS), tiles = parts(outputs, TILE);
		const char *from = (const char *)weight->data + (out * weight->stride + first) * size;
		for (int64_t k = 0; k < piece; k += DEPTH) {
			const struct panel panel = {from + k * size, weight->stride * size};
			const int64_t depth = smalti_min(piece - k, DEPTH);
			const char *next =
			    k + DEPTH < piece ? panel.from + DEPTH * size : from + OUTPUTS * panel.stride;
			FOR_WEIGHTS(weight->dtype, pack_panel, &panel, next, outputs, depth, work->weights);
			multiply_any(tiles, k > 0, work, rows, x_steps, k / TILE_TERMS, depth);
		}
		for (int64_t row = 0; row < rows; row += TILE)
			for (int64_t tile = 0; tile < tiles; tile++)
				add_tile(rows - row, work->sums + (row / TILE * 2 + tile) * TILE_FLOATS,
					 first == 0, cut->z_stride,
					 work->z + row * cut->z_stride + out + tile * TILE);
	}
}

/* Multiplies the sums of a block of rows by the scales of 8-bit rows. */
static void scale_rows(const struct smalti_matmul *m, const struct smalti_raw_weight *weight, int64_t rows,
		       int64_t z_stride, float *z)
{
	for (int64_t first = 0; first < m->out; first += LINE) {
		float scales[LINE] = {0};
		const int64_t count = smalti_min(LINE, m->out - first);
		for (int64_t i = 0; i < count; i++)
			scales[i] = scale_of(weight, m->in, first + i);
		for (int64_t r = 0; r < rows; r++)
			for (int64_t i = 0; i < count; i++)
				z[r * z_stride + first + i] *= scales[i];
	}
}

void FOR_ISA(smalti_matmul_raw_bf16)(const struct smalti_matmul *m, const struct smalti_raw_columns *x,
				     int x_parts, const struct smalti_raw_weight *weight, const float *bias,
				     const void *operand, int64_t y_stride, void *y, float *scratch)
{
	const struct cut cut = cut_of(m, x, x_parts);
	struct work work;
	lay_out(&cut, scratch, &work);
	tiles_begin();
	for (int64_t row = 0; row < m->rows; row += cut.rows) {
		int64_t rows = smalti_min(m->rows - row, cut.rows);
		int64_t first = 0;
		for (int i = 0; i < x_parts; i++)
			for (int64_t k = 0, piece; k < x[i].count; k += piece, first += piece) {
				piece = smalti_min(x[i].count - k, cut.depth);
				pack_rows(x[i].stride, (const uint16_t *)x[i].data + row * x[i].stride + k,
					  rows, piece, work.x);
				multiply_piece(m, weight, &cut, &work, rows, first, piece);
			}
		if (smalti_is_rows8(weight->dtype))
			scale_rows(m, weight, rows, cut.z_stride, work.z);
		for (int64_t r = 0; r < rows; r++)
			finish_row(m, 0, m->out, work.z + r * cut.z_stride, bias, operand,
				   (row + r) * y_stride, y);
	}
	tiles_end();
}
