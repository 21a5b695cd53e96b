/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/raw_widen.h"

/* A vector holds LANES outputs, and a tile of ROWS × OUTPUTS sums stays in registers. Each input adds its
 * weights, times its value in each row: no lane is wasted for any number of rows.
 *
 * A block of x is copied into the second cache, where the sums of a group of outputs are, too. Then, OUTPUTS
 * outputs and a piece of the inputs at a time, weights are widened and transposed into the first cache and
 * meet all rows of the block. Meanwhile the next weights are prefetched and the next block is copied, a few
 * cache lines at a time. Each group of outputs copies x once more. Pieces depend on the number of inputs
 * alone, and so does the order of all sums: one input after the other in a piece, then one piece after the
 * other. */
enum {
	DEPTH = SMALTI_RAW_DEPTH,
	X_STRIDE = DEPTH + LINE, /* not a power of two: rows would share places in the cache */
	/* Inputs between two turns of prefetching and copying. In a turn sums of AVX2 leave their registers,
	 * which those of AVX-512 do not; and the fewer prefetches at a time, the less they wait. */
	TURN = VEC_BYTES == 64 ? 16 : 64,
	BLOCK = 1 << 18, /* bytes in a block of x, at most: two are half of a small second cache */
	SUMS = 1 << 18,  /* bytes of a group's sums, at most */
	MANY = 256       /* rows in a block, at most: of more, converting weights costs nothing */
};

/* How a product is cut. */
struct partition {
	int64_t depth;  /* inputs in each piece but the last */
	int64_t pieces; /* in each block but the last */
	int64_t rows;   /* in each block, at most */
	int64_t outs;   /* in each group but the last: a multiple of OUTPUTS */
};

struct work {
	float *x[2];    /* pieces of a block [piece, row, X_STRIDE], and of the next one */
	float *weights; /* [inputs of a piece, OUTPUTS] */
	float *z;       /* x·Wᵀ of a block and a group [OUTPUTS at a time, row, OUTPUTS] */
};

static struct partition partition_of(const struct smalti_matmul *m, const struct smalti_raw_columns *x,
				     int x_parts)
{
	struct partition partition;
	const int64_t in = widest(x, x_parts);
	partition.depth = smalti_raw_depth(in);
	partition.rows = parts(m->rows, parts(m->rows, MANY));
	const int64_t pieces = parts(in, partition.depth);
	const int64_t held = BLOCK / (int64_t)sizeof(float) / (partition.rows * X_STRIDE);
	partition.pieces = parts(pieces, parts(pieces, held));
	const int64_t panels = parts(m->out, OUTPUTS);
	const int64_t summed = SUMS / (int64_t)sizeof(float) / (partition.rows * OUTPUTS);
	partition.outs = OUTPUTS * parts(panels, parts(panels, summed));
	return partition;
}

/* Cuts the scratch into its parts; returns the floats needed. With a NULL scratch it only counts. */
static int64_t lay_out(const struct partition *partition, float *scratch, struct work *work)
{
	const struct part all[] = {
	    {&work->x[0], partition->pieces * partition->rows * X_STRIDE},
	    {&work->x[1], partition->pieces * partition->rows * X_STRIDE},
	    {&work->weights, OUTPUTS * DEPTH},
	    {&work->z, partition->rows * partition->outs},
	};
	return workspace_layout(scratch, all, sizeof(all) / sizeof(all[0]));
}

int64_t FOR_ISA(smalti_matmul_raw_scratch)(const struct smalti_matmul *matmul,
					   const struct smalti_raw_columns *x, int x_parts)
{
#if defined(__AVX512BF16__)
	if (matmul->compute == SMALTI_BF16)
		return FOR_ISA(smalti_matmul_raw_bf16_scratch)(matmul, x, x_parts);
#endif
	const struct partition partition = partition_of(matmul, x, x_parts);
	struct work work;
	return lay_out(&partition, NULL, &work);
}

struct operands {
	const struct smalti_matmul *matmul;
	const struct smalti_raw_columns *x;
	int x_parts;
	const struct smalti_raw_weight *weight;
	struct partition partition;
};

/* Rows × inputs of x in one block, all of one part, and the outputs of a group that they are multiplied for.
 */
struct block {
	int64_t row, rows;
	int64_t out, outs;
	int part;
	int64_t first, end; /* inputs of the part */
	int64_t input;      /* number of the first one among the inputs of all parts */
};

static struct block block_at(const struct operands *o, int64_t row, int64_t out, int part, int64_t first,
			     int64_t input)
{
	return (struct block){
	    .row = row,
	    .rows = smalti_min(o->matmul->rows - row, o->partition.rows),
	    .out = out,
	    .outs = smalti_min(o->matmul->out - out, o->partition.outs),
	    .part = part,
	    .first = first,
	    .end = smalti_min(o->x[part].count, first + o->partition.pieces * o->partition.depth),
	    .input = input};
}

static bool is_last_of_sums(const struct operands *o, const struct block *block)
{
	return block->part == o->x_parts - 1 && block->end == o->x[block->part].count;
}

/* Returns the block after `block`; without rows if there is none. */
static struct block block_after(const struct operands *o, const struct block *block)
{
	const int64_t input = block->input + block->end - block->first, out = block->out + block->outs;
	if (block->end < o->x[block->part].count)
		return block_at(o, block->row, block->out, block->part, block->end, input);
	if (block->part < o->x_parts - 1)
		return block_at(o, block->row, block->out, block->part + 1, 0, input);
	if (out < o->matmul->out)
		return block_at(o, block->row, out, 0, 0, 0);
	return block_at(o, smalti_min(block->row + o->partition.rows, o->matmul->rows), 0, 0, 0, 0);
}

/* A block of x that is being packed: vector `k` of `row` of the piece that begins at `first`. */
struct packing {
	enum smalti_dtype dtype;
	const void *x;
	int64_t stride;
	struct block block;
	int64_t row, k, depth;
	int64_t at; /* the row's first element of the piece */
	float *to;
	int64_t vectors; /* per turn */
};

static struct packing begin_packing(const struct operands *o, const struct block *block, float *to,
				    int64_t turns)
{
	const int64_t inputs = block->end - block->first, stride = o->x[block->part].stride;
	return (struct packing){.dtype = o->matmul->compute,
				.x = o->x[block->part].data,
				.stride = stride,
				.block = *block,
				.depth = smalti_min(inputs, o->partition.depth),
				.at = block->row * stride + block->first,
				.to = to,
				.vectors =
				    parts(block->rows * smalti_round_up(inputs, LINE_BYTES) / LANES, turns)};
}

/* Packs some more vectors. */
INLINE void pack(struct packing *p, int64_t vectors)
{
	for (; vectors && p->block.rows; vectors--) {
		__builtin_prefetch((const char *)p->x +
				   (p->at + 2 * p->stride + p->k) * (p->dtype == SMALTI_F32 ? 4 : 2));
		vec_store(p->to + p->k, vec_read(p->dtype, p->x, p->at + p->k, p->depth - p->k));
		p->k += LANES;
		if (p->k < p->depth)
			continue;
		p->k = 0;
		p->at += p->stride;
		p->to += X_STRIDE;
		if (++p->row < p->block.rows)
			continue;
		p->row = 0;
		p->at += p->depth - p->block.rows * p->stride;
		p->block.first += p->depth;
		p->depth = smalti_min(p->depth, p->block.end - p->block.first);
		if (p->block.first == p->block.end)
			p->block.rows = 0;
	}
}

/* The next weights, prefetched during products. */
struct prefetch {
	struct panel panel;
	int64_t bytes, outputs; /* wanted of each output; outputs left */
	int64_t at;             /* in the first of these outputs */
	int64_t lines;          /* per turn */
};

INLINE void prefetch_some(struct prefetch *prefetch)
{
	for (int64_t lines = prefetch->lines; lines && prefetch->outputs; lines--) {
		__builtin_prefetch(prefetch->panel.from + prefetch->at, 0, 3);
		prefetch->at += LINE_BYTES;
		if (prefetch->at < prefetch->bytes)
			continue;
		prefetch->at = 0;
		prefetch->panel.from += prefetch->panel.stride;
		prefetch->outputs--;
	}
}

/* The further work of each turn. */
struct aside {
	struct prefetch prefetch;
	struct packing packing;
};

/* Computes z[rows, OUTPUTS] (+)= Σ x[·, input]·w[input, ·]. */
INLINE void tile(const int rows, int64_t depth, const float *x, const float *w, bool add, struct aside *aside,
		 float *z)
{
	vec sum[ROWS][VECTORS] = {0};
	for (int64_t k = 0; k < depth;) {
		prefetch_some(&aside->prefetch);
		pack(&aside->packing, aside->packing.vectors);
		UNROLL
		for (int r = 0; r < rows; r++) {
			UNROLL
			for (int v = 0; v < VECTORS; v++)
				sum[r][v] = vec_barrier(sum[r][v]);
		}
		for (const int64_t end = smalti_min(k + TURN, depth); k < end; k++) {
			vec right[VECTORS];
			UNROLL
			for (int v = 0; v < VECTORS; v++)
				right[v] = vec_barrier(vec_load(w + k * OUTPUTS + v * LANES));
			UNROLL
			for (int r = 0; r < rows; r++) {
				vec left = vec_barrier(vec_set1(x[r * X_STRIDE + k]));
				UNROLL
				for (int v = 0; v < VECTORS; v++)
					sum[r][v] = vec_fma(left, right[v], sum[r][v]);
			}
		}
	}
	UNROLL
	for (int r = 0; r < rows; r++, z += OUTPUTS) {
		UNROLL
		for (int v = 0; v < VECTORS; v++)
			vec_store(z + v * LANES, add ? vec_load(z + v * LANES) + sum[r][v] : sum[r][v]);
	}
}

static void tile_of(int64_t rows, int64_t depth, const float *x, const float *w, bool add,
		    struct aside *aside, float *z)
{
#define TILE(count)                                                                                          \
	case count:                                                                                          \
		tile(count, depth, x, w, add, aside, z);                                                     \
		break;
	switch (rows) {
		EACH_ROWS(TILE)
	}
#undef TILE
}

/* Multiplies a piece of OUTPUTS outputs with all rows of the block, in groups of nearly equal size. */
static void multiply_panel(const struct work *work, int64_t rows, int64_t depth, const float *x, bool add,
			   struct aside *aside, float *z)
{
	const int64_t groups = parts(rows, ROWS);
	for (int64_t group = 0, row = 0; group < groups; group++) {
		const int64_t end = rows * (group + 1) / groups;
		tile_of(end - row, depth, x + row * X_STRIDE, work->weights, add, aside, z + row * OUTPUTS);
		row = end;
	}
}

static int64_t count_turns(int64_t rows, int64_t depth)
{
	return parts(rows, ROWS) * parts(depth, TURN);
}

/* Returns the panel of `block` and OUTPUTS outputs from number `out` of its group on. */
static struct panel panel_of(const struct operands *o, const struct block *block, int64_t out)
{
	const struct smalti_raw_weight *weight = o->weight;
	const int64_t size = smalti_dtype_bytes(weight->dtype), first = block->out + out;
	return (struct panel){(const char *)weight->data + (first * weight->stride + block->input) * size,
			      weight->stride * size};
}

/* Computes z of a packed block, while it packs the next one and prefetches its weights. */
static void multiply_block(const struct operands *o, const struct work *work, const float *packed,
			   const struct block *block, const struct block *next, struct packing *packing)
{
	const struct smalti_matmul *m = o->matmul;
	const int64_t size = smalti_dtype_bytes(o->weight->dtype);
	struct aside aside = {.packing = *packing};
	for (int64_t out = 0; out < block->outs; out += OUTPUTS) {
		struct panel panel = panel_of(o, block, out);
		const struct panel behind =
		    out + OUTPUTS < block->outs ? panel_of(o, block, out + OUTPUTS) : panel_of(o, next, 0);
		const float *x = packed;
		for (int64_t k = block->first; k < block->end; k += o->partition.depth) {
			const int64_t depth = smalti_min(block->end - k, o->partition.depth);
			widen_panel(m, o->weight->dtype, &panel, smalti_min(block->outs - out, OUTPUTS),
				    depth, work->weights);
			panel.from += depth * size;
			const int64_t lines = OUTPUTS * parts(depth * size, LINE_BYTES);
			aside.prefetch =
			    (struct prefetch){.panel = k + depth < block->end ? panel : behind,
					      .bytes = depth * size,
					      .outputs = OUTPUTS,
					      .lines = parts(lines, count_turns(block->rows, depth))};
			multiply_panel(work, block->rows, depth, x, block->input + k > block->first, &aside,
				       work->z + out * o->partition.rows);
			x += block->rows * X_STRIDE;
		}
	}
	*packing = aside.packing;
}

/* Multiplies a block's sums by the scales of 8-bit rows. */
static void scale_block(const struct operands *o, const struct block *block, float *z)
{
	for (int64_t out = 0; out < block->outs; out += OUTPUTS, z += o->partition.rows * OUTPUTS) {
		float scales[OUTPUTS] = {0};
		for (int64_t i = 0; i < smalti_min(OUTPUTS, block->outs - out); i++)
			scales[i] = scale_of(o->weight, o->matmul->in, block->out + out + i);
		for (int64_t i = 0; i < block->rows * OUTPUTS; i++)
			z[i] *= scales[i % OUTPUTS];
	}
}

static void finish_block(const struct operands *o, const struct block *block, float *z, const float *bias,
			 const void *operand, int64_t y_stride, void *y)
{
	const int64_t end = block->out + block->outs;
	if (smalti_is_rows8(o->weight->dtype))
		scale_block(o, block, z);
	for (int64_t r = 0; r < block->rows; r++)
		for (int64_t out = 0; out < block->outs; out += OUTPUTS)
			finish_row(o->matmul, block->out + out, smalti_min(block->out + out + OUTPUTS, end),
				   z + out * o->partition.rows + r * OUTPUTS, bias, operand,
				   (block->row + r) * y_stride, y);
}

void FOR_ISA(smalti_matmul_raw)(const struct smalti_matmul *m, const struct smalti_raw_columns *x,
				int x_parts, const struct smalti_raw_weight *weight, const float *bias,
				const void *operand, int64_t y_stride, void *y, float *scratch)
{
#if defined(__AVX512BF16__)
	if (m->compute == SMALTI_BF16) {
		FOR_ISA(smalti_matmul_raw_bf16)(m, x, x_parts, weight, bias, operand, y_stride, y, scratch);
		return;
	}
#endif
	const struct operands o = {m, x, x_parts, weight, partition_of(m, x, x_parts)};
	struct work work;
	lay_out(&o.partition, scratch, &work);
	struct block block = block_at(&o, 0, 0, 0, 0, 0);
	struct packing packing = begin_packing(&o, &block, work.x[0], 1);
	for (int turn = 0; block.rows; turn ^= 1) {
		const struct block next = block_after(&o, &block);
		const int64_t turns =
		    parts(block.outs, OUTPUTS) * count_turns(block.rows, block.end - block.first);
		pack(&packing, INT64_MAX); /* the rest of it */
		packing = begin_packing(&o, &next, work.x[turn ^ 1], turns);
		multiply_block(&o, &work, work.x[turn], &block, &next, &packing);
		if (is_last_of_sums(&o, &block))
			finish_block(&o, &block, work.z, bias, operand, y_stride, y);
		block = next;
	}
}
