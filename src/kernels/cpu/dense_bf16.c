/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/tiles.h"
#include "kernels/cpu/vector.h"
#include "kernels/cpu/workspace.h"

/* Rows of a are packed, as many as the third cache certainly holds. Then b's columns are packed, a block at a
 * time, into the second cache, and meet all those rows. Operands are rounded on the way. Sums begin at 0.
 * When a piece of their terms is done, they are added to y, or for a result in bf16, to f32 sums of the
 * pieces before. */
enum {
	ROWS = 2 * TILE,
	COLUMNS = 2 * TILE,
	PIECE = 1280,             /* terms in a piece, at most */
	PACKED_ROWS = 1 << 22,    /* bytes */
	PACKED_COLUMNS = 1 << 20, /* bytes: half of a second cache */
};

/* Lines are rows of a, or columns of b. */
struct operand {
	const char *data;
	enum smalti_dtype dtype;
	int64_t lines, stride; /* elements from a line to the next, or from a term to the next */
	bool along;            /* the terms of a line are contiguous, else the lines of a term */
	bool pairs;            /* packed as tiles b; else as tiles a */
};

struct cut {
	int64_t terms;         /* in each piece but the last */
	int64_t rows, columns; /* in each block but the last */
};

struct work {
	float *a;    /* tiles a [tile of rows, step of the piece] */
	float *b;    /* tiles b [tile of columns, step of the piece] */
	float *c;    /* 2 × 2 tiles c */
	float *sums; /* of the pieces before, in y's layout; y itself where that is f32 */
};

static int64_t parts(int64_t whole, int64_t part)
{
	return (whole + part - 1) / part;
}

/* Returns the lines of a block, in whole blocks of 2 tiles and equal parts: all, or as many as fit in so many
 * bytes. */
static int64_t lines_of(int64_t lines, int64_t terms, int64_t bytes)
{
	const int64_t max = bytes / 2 / terms / (2 * TILE) * (2 * TILE);
	return smalti_round_up(parts(lines, parts(lines, max)), 2 * TILE);
}

static struct cut cut_of(const struct smalti_dense *d)
{
	const int64_t terms = smalti_round_up(parts(d->inner, parts(d->inner, PIECE)), TILE_TERMS);
	return (struct cut){terms, lines_of(d->rows, terms, PACKED_ROWS),
			    lines_of(d->columns, terms, PACKED_COLUMNS)};
}

static int64_t lay_out(const struct smalti_dense *d, const struct cut *cut, float *scratch, struct work *work)
{
	const bool apart = d->result != SMALTI_F32 && d->inner > cut->terms;
	const struct part all[] = {
	    {&work->a, cut->rows * cut->terms / 2},
	    {&work->b, cut->columns * cut->terms / 2},
	    {&work->c, 4 * TILE_FLOATS},
	    {&work->sums, apart ? d->rows * smalti_dense_y_row(d) : 0},
	};
	return workspace_layout(scratch, all, sizeof(all) / sizeof(all[0]));
}

int64_t FOR_ISA(smalti_dense_bf16_scratch)(const struct smalti_dense *dense)
{
	const struct cut cut = cut_of(dense);
	struct work work;
	return lay_out(dense, &cut, NULL, &work);
}

/* Reads the pairs of two terms of TILE lines, of which the first `lines` exist. */
INLINE vec read_pairs(enum smalti_dtype dtype, const char *from, int64_t stride, int64_t lines, int64_t terms)
{
	const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8,
					       23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
	vec first = {0}, second = {0};
	if (terms > 0)
		first = vec_read(dtype, from, 0, lines);
	if (terms > 1)
		second = vec_read(dtype, from, stride, lines);
	const __m512i both = (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first);
	return (vec)_mm512_permutexvar_epi16(order, both);
}

/* What is packed of an operand, in whole tiles [tile of lines, step]. */
struct packing {
	const struct operand *operand;
	int64_t line, lines, term, terms;
	float *to;
};

/* Packs the tile of the first `lines` lines and `terms` terms from the given ones on, with zeros behind them.
 */
INLINE void pack_tile(enum smalti_dtype dtype, const bool along, const bool pairs, const struct operand *o,
		      int64_t line, const int64_t lines, int64_t term, const int64_t terms, float *to)
{
	const int64_t size = smalti_dtype_bytes(dtype);
	const int64_t first = along ? line * o->stride + term : term * o->stride + line;
	const char *from = o->data + first * size;
	vec tile[TILE];
	UNROLL
	for (int i = 0; i < TILE; i++)
		if (!along)
			tile[i] = read_pairs(dtype, from + 2 * i * o->stride * size, o->stride, lines,
					     terms - 2 * i);
		else if (i < lines)
			tile[i] = read_rounded(dtype, from + i * o->stride * size, terms);
		else
			tile[i] = (vec){0};
	if (along == pairs)
		vec_transpose(tile);
	UNROLL
	for (int i = 0; i < TILE; i++)
		vec_store(to + i * TILE, tile[i]);
}

/* Packs the tiles in their operand's order in memory. */
INLINE void pack_tiles(enum smalti_dtype dtype, const bool along, const bool pairs, const struct packing *p)
{
	const int64_t tiles = parts(p->lines, TILE), steps = parts(p->terms, TILE_TERMS);
	for (int64_t i = 0; i < (along ? tiles : steps); i++)
		for (int64_t j = 0; j < (along ? steps : tiles); j++) {
			const int64_t tile = along ? i : j, step = along ? j : i;
			const int64_t line = p->line + tile * TILE, term = p->term + step * TILE_TERMS;
			const int64_t lines = p->operand->lines - line, terms = p->terms - step * TILE_TERMS;
			float *to = p->to + (tile * steps + step) * TILE_FLOATS;
			if (lines >= TILE && terms >= TILE_TERMS)
				pack_tile(dtype, along, pairs, p->operand, line, TILE, term, TILE_TERMS, to);
			else
				pack_tile(dtype, along, pairs, p->operand, line, lines, term, terms, to);
		}
}

INLINE void pack_any(enum smalti_dtype dtype, const struct packing *p)
{
	if (p->operand->along && p->operand->pairs)
		pack_tiles(dtype, true, true, p);
	else if (p->operand->along)
		pack_tiles(dtype, true, false, p);
	else if (p->operand->pairs)
		pack_tiles(dtype, false, true, p);
	else
		pack_tiles(dtype, false, false, p);
}

static void pack(const struct packing *p)
{
	FOR_DTYPE(p->operand->dtype, pack_any, p);
}

/* A piece of the sums of at most ROWS rows and COLUMNS columns. */
struct block {
	int64_t row, rows, column, columns, steps;
	bool first, last; /* among the pieces */
};

/* Returns the sums of the pieces before; for the first, what is added to the product. */
INLINE vec before(const struct smalti_dense *d, const struct block *b, const struct work *work, int64_t at,
		  int64_t column, int64_t count, const void *y)
{
	if (!b->first)
		return vec_read(SMALTI_F32, work->sums, at, count);
	vec value = {0};
	if (d->add)
		value += vec_read(SMALTI_F32, y, at, count);
	if (d->bias)
		value += vec_read(SMALTI_F32, d->bias, column, count);
	return value;
}

/* Adds the tiles of sums to the sums of the pieces before. */
static void finish(const struct smalti_dense *d, const struct block *b, const struct work *work, void *y)
{
	for (int64_t row = 0; row < b->rows; row++)
		for (int64_t column = 0; column < b->columns; column += TILE) {
			const float *c = work->c + (row / TILE * 2 + column / TILE) * TILE_FLOATS;
			const int64_t at = (b->row + row) * smalti_dense_y_row(d) + b->column + column;
			const int64_t count = smalti_min(b->columns - column, TILE);
			const vec sum = vec_load(c + row % TILE * TILE) +
					before(d, b, work, at, b->column + column, count, y);
			if (b->last)
				vec_write(d->result, y, at, count, sum);
			else
				vec_write(SMALTI_F32, work->sums, at, count, sum);
		}
}

/* Multiplies the packed tiles from these on. Prefetches what finish() reads and writes a block ahead. */
static void multiply(const struct smalti_dense *d, const struct work *work, const struct block *b,
		     const float *a_tiles, const float *b_tiles, const void *y)
{
	const int64_t size = smalti_dtype_bytes(d->result);
	const struct tile_product product = {
	    .terms = b->steps * TILE_TERMS,
	    .a = a_tiles,
	    .a_row = b->steps,
	    .a_step = 1,
	    .b = b_tiles,
	    .b_column = b->steps,
	    .b_step = 1,
	    .c = work->c,
	    .c_row = 2,
	    .c_column = 1,
	    .next = (const char *)y + (b->row * smalti_dense_y_row(d) + b->column + COLUMNS) * size,
	    .next_row = smalti_dense_y_row(d) * size,
	    .next_column = TILE * size,
	};
	if (b->rows > TILE && b->columns > TILE)
		tiles_multiply(2, 2, false, &product);
	else if (b->rows > TILE)
		tiles_multiply(2, 1, false, &product);
	else if (b->columns > TILE)
		tiles_multiply(1, 2, false, &product);
	else
		tiles_multiply(1, 1, false, &product);
}

/* Multiplies the packed rows, `rows` from the block's on, and the packed columns. */
static void multiply_packed(const struct smalti_dense *d, const struct work *work, struct block block,
			    int64_t rows, int64_t columns, void *y)
{
	const int64_t line = block.steps * TILE_FLOATS / TILE; /* floats */
	struct block b = block;
	for (int64_t row = 0; row < rows; row += ROWS)
		for (int64_t column = 0; column < columns; column += COLUMNS) {
			b.row = block.row + row;
			b.rows = smalti_min(rows - row, ROWS);
			b.column = block.column + column;
			b.columns = smalti_min(columns - column, COLUMNS);
			multiply(d, work, &b, work->a + row * line, work->b + column * line, y);
			finish(d, &b, work, y);
		}
}

void FOR_ISA(smalti_dense_bf16)(const struct smalti_dense *d, const void *a, const void *b, void *y,
				float *scratch)
{
	const struct operand left = {a, d->a_dtype, d->rows, smalti_dense_a_row(d), !d->turned_a, false};
	const struct operand right = {b, d->b_dtype, d->columns, smalti_dense_b_row(d), d->turned_b, true};
	const struct cut cut = cut_of(d);
	struct work work;
	lay_out(d, &cut, scratch, &work);
	if (d->result == SMALTI_F32)
		work.sums = y;
	tiles_begin();
	for (int64_t term = 0; term < d->inner; term += cut.terms)
		for (int64_t row = 0; row < d->rows; row += cut.rows) {
			const int64_t terms = smalti_min(d->inner - term, cut.terms);
			const int64_t rows = smalti_min(d->rows - row, cut.rows);
			pack(&(struct packing){&left, row, rows, term, terms, work.a});
			for (int64_t column = 0; column < d->columns; column += cut.columns) {
				const int64_t columns = smalti_min(d->columns - column, cut.columns);
				const struct block block = {.row = row,
							    .column = column,
							    .steps = parts(terms, TILE_TERMS),
							    .first = term == 0,
							    .last = term + terms == d->inner};
				pack(&(struct packing){&right, column, columns, term, terms, work.b});
				multiply_packed(d, &work, block, rows, columns, y);
			}
		}
	tiles_end();
}
