/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/raw_parts.h"

/* Both operands of x·Wᵀ have their inputs side by side, so a vector holds LANES inputs of a row, or of an
 * output, and nothing is transposed: a tile of ROWS × OUTPUTS vectors of sums stays in registers, and their
 * lanes are summed once at the end. Whatever the number of rows, no lane is wasted.
 *
 * Inputs are cut into pieces, rows into blocks, so that a block of x stays in the second cache. It is packed
 * in groups of ROWS rows, a vector of each in turn. Then, OUTPUTS outputs and DEPTH inputs at a time, weights
 * are widened into the first cache, a vector of each output in turn, and meet all groups of the block; until
 * the end of the piece a group's sums wait as vectors. Pieces depend on the number of inputs alone. */
#if VEC_BYTES == 64
enum { ROWS = 4, OUTPUTS = 6, TILE = 24, PADDED = 32 };
#else
enum { ROWS = 3, OUTPUTS = 4, TILE = 12, PADDED = 16 };
#endif
enum { DEPTH = 512 }; /* inputs of widened weights at a time */

struct work {
	float *x;       /* per group of a block [steps, rows of the group, LANES] */
	float *weights; /* [steps, OUTPUTS, LANES] */
	float *sums;    /* per group of a block [TILE, LANES] */
	float *z;       /* x·Wᵀ of a block [rows, z_stride] */
};

static struct cut cut_of(const struct smalti_matmul *m)
{
	return cut_product(m, (int64_t)sizeof(float), LANES, ROWS);
}

/* Cuts the scratch into its parts; the floats needed. With a NULL scratch only counts. */
static int64_t lay_out(const struct cut *cut, float *scratch, struct work *work)
{
	const struct part all[] = {
	    {&work->x, cut->rows * cut->depth},
	    {&work->weights, OUTPUTS * DEPTH},
	    {&work->sums, cut->rows / ROWS * TILE * LANES},
	    {&work->z, cut->rows * cut->z_stride},
	};
	return carve(scratch, all, sizeof(all) / sizeof(all[0]));
}

int64_t FOR_ISA(smalti_matmul_raw_scratch)(const struct smalti_matmul *matmul)
{
#if defined(__AVX512BF16__)
	if (matmul->compute == SMALTI_BF16)
		return FOR_ISA(smalti_matmul_raw_bf16_scratch)(matmul);
#endif
	const struct cut cut = cut_of(matmul);
	struct work work;
	return lay_out(&cut, NULL, &work);
}

/* A block of x from `row` and input `first`. */
static void pack_rows(const struct smalti_matmul *m, int64_t x_stride, const void *x, int64_t row,
		      int64_t rows, int64_t first, int64_t depth, float *packed)
{
	for (int64_t in_block = 0; in_block < rows; in_block += ROWS) {
		int64_t group = smaller(rows - in_block, ROWS);
		for (int64_t r = 0; r < group; r++) {
			int64_t at = (row + in_block + r) * x_stride + first;
			for (int64_t k = 0; k < depth; k += LANES)
				vec_store(packed + k * group + r * LANES,
					  vec_read(m->compute, x, at + k, depth - k));
		}
		packed += round_up(depth, LANES) * group;
	}
}

/* Weights of `outputs` outputs, the last of them repeated up to OUTPUTS; zeros up to a whole vector. */
INLINE void widen(enum smalti_dtype dtype, const bool rounded, const struct panel *panel, int64_t outputs,
		  int64_t depth, float *to)
{
	for (int64_t o = 0; o < OUTPUTS; o++) {
		const char *from = panel->from + smaller(o, outputs - 1) * panel->stride;
		for (int64_t k = 0; k < depth; k += LANES) {
			vec value = vec_read(dtype, from, k, depth - k);
			vec_store(to + k * OUTPUTS + o * LANES,
				  rounded ? vec_from_bf16(vec_to_bf16(value)) : value);
		}
	}
}

static void widen_panel(const struct smalti_matmul *m, enum smalti_dtype dtype, const struct panel *panel,
			int64_t outputs, int64_t depth, float *to)
{
	bool rounded = m->compute == SMALTI_BF16;
	if (dtype == SMALTI_BF16)
		widen(SMALTI_BF16, false, panel, outputs, depth, to);
	else if (dtype == SMALTI_F16 && rounded)
		widen(SMALTI_F16, true, panel, outputs, depth, to);
	else if (dtype == SMALTI_F16)
		widen(SMALTI_F16, false, panel, outputs, depth, to);
	else if (rounded)
		widen(SMALTI_F32, true, panel, outputs, depth, to);
	else
		widen(SMALTI_F32, false, panel, outputs, depth, to);
}

/* What a group of rows fetches of the next weights while it multiplies: `count` outputs. */
struct ahead {
	const char *from;
	int64_t stride, count, step;
};

/* sums[r, o] (+)= Σ x[·, r]·w[·, o], lane by lane. */
INLINE void tile(const int rows, int64_t steps, const float *x, const float *w, bool first,
		 const struct ahead *ahead, float *sums)
{
	vec sum[ROWS][OUTPUTS];
	UNROLL
	for (int r = 0; r < rows; r++) {
		UNROLL
		for (int o = 0; o < OUTPUTS; o++)
			sum[r][o] = first ? (vec){0} : vec_load(sums + (r * OUTPUTS + o) * LANES);
	}
	const char *next = ahead->from;
	for (int64_t step = 0; step < steps; step++, x += rows * LANES, w += OUTPUTS * LANES) {
		vec left[ROWS];
		UNROLL
		for (int r = 0; r < rows; r++)
			left[r] = vec_keep(vec_load(x + r * LANES));
		for (int64_t i = 0; i < ahead->count; i++)
			__builtin_prefetch(next + i * ahead->stride, 0, 2);
		next += ahead->step;
		UNROLL
		for (int o = 0; o < OUTPUTS; o++) {
			vec right = vec_keep(vec_load(w + o * LANES));
			UNROLL
			for (int r = 0; r < rows; r++)
				sum[r][o] = vec_fma(left[r], right, sum[r][o]);
		}
	}
	UNROLL
	for (int r = 0; r < rows; r++) {
		UNROLL
		for (int o = 0; o < OUTPUTS; o++)
			vec_store(sums + (r * OUTPUTS + o) * LANES, sum[r][o]);
	}
}

static void tile_of(int64_t rows, int64_t steps, const float *x, const float *w, bool first,
		    const struct ahead *ahead, float *sums)
{
	if (rows == 1)
		tile(1, steps, x, w, first, ahead, sums);
	else if (rows == 2)
		tile(2, steps, x, w, first, ahead, sums);
	else if (rows == 3)
		tile(3, steps, x, w, first, ahead, sums);
	else
		tile(ROWS, steps, x, w, first, ahead, sums);
}

/* Lane i is the sum of the lanes of sums[i]: each round interleaves the first half of the vectors with the
 * second and adds both halves of what comes of it. */
INLINE vec add_across(vec sums[LANES])
{
	UNROLL
	for (int half = LANES / 2; half; half /= 2) {
		UNROLL
		for (int i = 0; i < half; i++) {
			vec a = sums[i], b = sums[i + half];
			sums[i] = __builtin_shufflevector(a, b, LOW_HALVES) +
				  __builtin_shufflevector(a, b, HIGH_HALVES);
		}
	}
	return sums[0];
}

/* z[rows, outputs] (+)= the sums of each vector's lanes. */
INLINE void add_lanes(int64_t rows, int64_t outputs, const float *sums, bool first, int64_t z_stride,
		      float *z)
{
	float dense[PADDED];
	UNROLL
	for (int i = 0; i < PADDED; i += LANES) {
		vec some[LANES];
		UNROLL
		for (int j = 0; j < LANES; j++)
			some[j] = i + j < TILE ? vec_load(sums + (i + j) * LANES) : (vec){0};
		vec_store(dense + i, add_across(some));
	}
	for (int64_t r = 0; r < rows; r++)
		for (int64_t o = 0; o < outputs; o++)
			z[r * z_stride + o] =
			    first ? dense[r * OUTPUTS + o] : z[r * z_stride + o] + dense[r * OUTPUTS + o];
}

/* One piece of the inputs, from `first`, of a block of rows. */
static void multiply_piece(const struct smalti_matmul *m, const struct smalti_raw_weight *weight,
			   const struct cut *cut, const struct work *work, int64_t rows, int64_t first)
{
	int64_t size = smalti_dtype_bytes(weight->dtype);
	int64_t piece = smaller(m->in - first, cut->depth), groups = parts(rows, ROWS);
	for (int64_t out = 0; out < m->out; out += OUTPUTS) {
		int64_t outputs = smaller(m->out - out, OUTPUTS);
		for (int64_t k = 0; k < piece; k += DEPTH) {
			struct panel panel = {(const char *)weight->data +
						  (out * weight->stride + first + k) * size,
					      weight->stride * size};
			int64_t depth = smaller(piece - k, DEPTH), steps = parts(depth, LANES);
			widen_panel(m, weight->dtype, &panel, outputs, depth, work->weights);
			bool end = k + DEPTH >= piece;
			const char *next = end ? (const char *)weight->data +
						     ((out + OUTPUTS) * weight->stride + first) * size
					       : panel.from + DEPTH * size;
			for (int64_t group = 0; group < groups; group++) {
				int64_t row = group * ROWS, count = smaller(rows - row, ROWS);
				struct ahead ahead = {next + group * panel.stride, groups * panel.stride,
						      parts(OUTPUTS - group, groups), LANES * size};
				if (group >= OUTPUTS)
					ahead.count = 0;
				float *sums = work->sums + group * TILE * LANES;
				tile_of(count, steps, work->x + row * round_up(piece, LANES) + k * count,
					work->weights, k == 0, &ahead, sums);
				if (end)
					add_lanes(count, outputs, sums, first == 0, cut->z_stride,
						  work->z + row * cut->z_stride + out);
			}
		}
	}
}

void FOR_ISA(smalti_matmul_raw)(const struct smalti_matmul *m, int64_t x_stride, const void *x,
				const struct smalti_raw_weight *weight, const float *bias,
				const void *operand, int64_t y_stride, void *y, float *scratch)
{
#if defined(__AVX512BF16__)
	if (m->compute == SMALTI_BF16) {
		FOR_ISA(smalti_matmul_raw_bf16)(m, x_stride, x, weight, bias, operand, y_stride, y, scratch);
		return;
	}
#endif
	const struct cut cut = cut_of(m);
	struct work work;
	lay_out(&cut, scratch, &work);
	for (int64_t row = 0; row < m->rows; row += cut.rows) {
		int64_t rows = smaller(m->rows - row, cut.rows);
		for (int64_t first = 0; first < m->in; first += cut.depth) {
			pack_rows(m, x_stride, x, row, rows, first, smaller(m->in - first, cut.depth),
				  work.x);
			multiply_piece(m, weight, &cut, &work, rows, first);
		}
		for (int64_t r = 0; r < rows; r++)
			finish_row(m, work.z + r * cut.z_stride, bias, operand, (row + r) * y_stride, y);
	}
}
