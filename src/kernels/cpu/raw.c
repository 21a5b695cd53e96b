/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector_math.h"

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
enum {
	DEPTH = 512,     /* inputs of widened weights at a time */
	PIECE = 4096,    /* inputs in a piece, at most */
	BLOCK = 1 << 18, /* elements in a block of x, at most: 1 MiB, half of a second cache */
	MANY = 256,      /* rows in a block, at most: of more, widening costs nothing */
	LINE = 16        /* floats in a cache line */
};

/* How a product is cut. */
struct cut {
	int64_t pieces, depth; /* inputs in each but the last: a multiple of LANES */
	int64_t blocks, rows;  /* rows in each but the last: a multiple of ROWS */
	int64_t z_stride;      /* an odd number of cache lines */
};

struct work {
	float *x;       /* per group of a block [steps, rows of the group, LANES] */
	float *weights; /* [steps, OUTPUTS, LANES] */
	float *sums;    /* per group of a block [TILE, LANES] */
	float *z;       /* x·Wᵀ of a block [rows, z_stride] */
};

/* Where the weights of a block of outputs and inputs begin. */
struct panel {
	const char *from;
	int64_t stride; /* bytes from an output to the next */
};

INLINE int64_t smaller(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

INLINE int64_t parts(int64_t whole, int64_t part)
{
	return (whole + part - 1) / part;
}

INLINE int64_t round_up(int64_t value, int64_t to)
{
	return parts(value, to) * to;
}

static struct cut cut_of(const struct smalti_matmul *m)
{
	struct cut cut = {.pieces = parts(m->in, PIECE)};
	cut.depth = round_up(parts(m->in, cut.pieces), LANES);
	cut.blocks = parts(m->rows, smaller(BLOCK / cut.depth, MANY) / ROWS * ROWS);
	cut.rows = round_up(parts(m->rows, cut.blocks), ROWS);
	cut.z_stride = (parts(m->out, LINE) | 1) * LINE;
	return cut;
}

/* Cuts the scratch into its parts; the floats needed. With a NULL scratch only counts. */
static int64_t lay_out(const struct cut *cut, float *scratch, struct work *work)
{
	struct {
		float **part;
		int64_t floats;
	} all[] = {
	    {&work->x, cut->rows * cut->depth},
	    {&work->weights, OUTPUTS * DEPTH},
	    {&work->sums, cut->rows / ROWS * TILE * LANES},
	    {&work->z, cut->rows * cut->z_stride},
	};
	int64_t used = 0;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		if (scratch)
			*all[i].part = scratch + used;
		used += round_up(all[i].floats, LINE);
	}
	return used;
}

int64_t FOR_ISA(smalti_matmul_raw_scratch)(const struct smalti_matmul *matmul)
{
	struct cut cut = cut_of(matmul);
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

/* gelu_tanh(z) = z / (1 + e^−2u), u = √(2/π)·(z + 0.044715 z³). */
INLINE vec gelu(vec z)
{
	vec u = vec_fma(z * z * z, vec_all(0.044715f), z);
	return z / (vec_exp(u * -1.5957691216f) + 1.f);
}

INLINE vec apply(enum smalti_epilogue epilogue, vec z, vec gate, vec operand, vec y)
{
	switch (epilogue) {
	case SMALTI_EPILOGUE_GELU:
		return gelu(z);
	case SMALTI_EPILOGUE_SILU:
		return vec_silu(z);
	case SMALTI_EPILOGUE_ADD:
		return y + z;
	case SMALTI_EPILOGUE_GATE_ADD:
		return vec_fma(gate, z, y);
	case SMALTI_EPILOGUE_MULTIPLY:
		return z * operand;
	default:
		return z;
	}
}

static void finish_row(const struct smalti_matmul *m, const float *z, const float *bias, const void *operand,
		       int64_t at, void *y)
{
	bool gated = m->epilogue == SMALTI_EPILOGUE_GATE_ADD;
	bool added = gated || m->epilogue == SMALTI_EPILOGUE_ADD;
	bool multiplied = m->epilogue == SMALTI_EPILOGUE_MULTIPLY;
	for (int64_t o = 0; o < m->out; o += LANES) {
		int64_t left = m->out - o;
		vec sum = vec_read(SMALTI_F32, z, o, left), zero = {0};
		if (bias)
			sum += vec_read(SMALTI_F32, bias, o, left);
		vec gate = gated ? vec_read(SMALTI_F32, operand, o, left) : zero;
		vec factor = multiplied ? vec_read(m->result, operand, at + o, left) : zero;
		vec old = added ? vec_read(m->result, y, at + o, left) : zero;
		vec_write(m->result, y, at + o, left, apply(m->epilogue, sum, gate, factor, old));
	}
}

void FOR_ISA(smalti_matmul_raw)(const struct smalti_matmul *m, int64_t x_stride, const void *x,
				const struct smalti_raw_weight *weight, const float *bias,
				const void *operand, int64_t y_stride, void *y, float *scratch)
{
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
