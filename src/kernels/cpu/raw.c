/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/raw_parts.h"

/* A vector holds LANES outputs, and a tile of ROWS × OUTPUTS sums stays in registers, to which an input adds
 * its weights, times each row's value of it: whatever the number of rows, no lane is wasted.
 *
 * A block of x is copied to where it stays in the second cache. Then, OUTPUTS outputs and a piece of the
 * inputs at a time, weights are widened and transposed into the first cache and meet all rows of the block,
 * which fetch the next weights meanwhile. Pieces depend on the number of inputs alone, and so does the order
 * of all sums: of a piece one input after the other, then one piece after the other. */
#if VEC_BYTES == 64
enum { ROWS = 14 };
#else
enum { ROWS = 6 };
#endif
enum {
	VECTORS = 2, /* of outputs in a tile */
	OUTPUTS = VECTORS * LANES,
	DEPTH = 128,             /* inputs in a piece, at most: a longer run of sums rounds more */
	X_STRIDE = DEPTH + LINE, /* not a power of two: rows would share cache lines' places */
	LINE_BYTES = 4 * LINE,   /* of an output's weights that are widened at a time */
	BLOCK = 1 << 19,         /* bytes in a block of x, at most: half of a small second cache */
	MANY = 256               /* rows in a block, at most: of more, converting weights costs nothing */
};

/* How a product is cut. */
struct cut {
	int64_t depth;    /* inputs in each piece but the last */
	int64_t pieces;   /* in each block but the last */
	int64_t rows;     /* in each block, at most */
	int64_t z_stride; /* an odd number of cache lines */
};

struct work {
	float *x;       /* pieces of a block [piece, row, X_STRIDE] */
	float *weights; /* [inputs of a piece, OUTPUTS] */
	float *z;       /* x·Wᵀ of a block [rows, z_stride] */
};

static struct cut cut_of(const struct smalti_matmul *m)
{
	struct cut cut;
	cut.depth = round_up(parts(m->in, parts(m->in, DEPTH)), LINE_BYTES / 2);
	cut.rows = parts(m->rows, parts(m->rows, MANY));
	const int64_t pieces = parts(m->in, cut.depth);
	const int64_t held = BLOCK / (int64_t)sizeof(float) / (cut.rows * X_STRIDE);
	cut.pieces = parts(pieces, parts(pieces, held));
	cut.z_stride = (parts(round_up(m->out, OUTPUTS), LINE) | 1) * LINE;
	return cut;
}

/* Cuts the scratch into its parts; the floats needed. With a NULL scratch only counts. */
static int64_t lay_out(const struct cut *cut, float *scratch, struct work *work)
{
	const struct part all[] = {
	    {&work->x, cut->pieces * cut->rows * X_STRIDE},
	    {&work->weights, OUTPUTS * DEPTH},
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

/* A piece of a block of x, from element `at`. */
static void pack_rows(const struct smalti_matmul *m, int64_t x_stride, const void *x, int64_t at,
		      int64_t rows, int64_t depth, float *packed)
{
	const int64_t size = smalti_dtype_bytes(m->compute);
	for (int64_t row = 0; row < rows; row++, at += x_stride, packed += X_STRIDE)
		for (int64_t k = 0; k < depth; k += LANES) {
			__builtin_prefetch((const char *)x + (at + 2 * x_stride + k) * size);
			vec_store(packed + k, vec_read(m->compute, x, at + k, depth - k));
		}
}

/* Interleaves the elements first … of one vector with those of another, in each of `places` of 16 bytes. */
#define MIX4(first, count) (first), (first) + (count), (first) + 1, (first) + 1 + (count)
#define MIX8(first, count) MIX4(first, count), MIX4((first) + 2, count)
#if VEC_BYTES == 64
#define EACH_PLACE(mix, first, each, count)                                                                  \
	mix(first, count), mix((first) + (each), count), mix((first) + 2 * (each), count),                   \
	    mix((first) + 3 * (each), count)
#elif VEC_BYTES == 32
#define EACH_PLACE(mix, first, each, count) mix(first, count), mix((first) + (each), count)
#else
#define EACH_PLACE(mix, first, each, count) mix(first, count)
#endif
#define FLOATS_FROM(first) EACH_PLACE(MIX4, first, 4, LANES)
#define HALVES_FROM(first) EACH_PLACE(MIX8, first, 8, 2 * LANES)

typedef uint16_t halves __attribute__((vector_size(VEC_BYTES)));
typedef float place __attribute__((vector_size(16)));

INLINE place place_load(const char *from)
{
	place value;
	memcpy(&value, from, sizeof(value));
	return value;
}

/* 16 bytes of each of LANES / 4 rows, `stride` apart. */
INLINE vec gather_places(const char *from, int64_t stride)
{
#if VEC_BYTES == 64
	__m512 value = _mm512_castps128_ps512((__m128)place_load(from));
	value = _mm512_insertf32x4(value, (__m128)place_load(from + stride), 1);
	value = _mm512_insertf32x4(value, (__m128)place_load(from + 2 * stride), 2);
	return (vec)_mm512_insertf32x4(value, (__m128)place_load(from + 3 * stride), 3);
#elif VEC_BYTES == 32
	return __builtin_shufflevector(place_load(from), place_load(from + stride), 0, 1, 2, 3, 4, 5, 6, 7);
#else
	(void)stride;
	return place_load(from);
#endif
}

INLINE vec rounded_if(const bool rounded, vec value)
{
	return rounded ? vec_from_bf16(vec_to_bf16(value)) : value;
}

/* Four inputs of all outputs, whose rows lie a LINE apart, to [input, OUTPUTS]. */
INLINE void turn_floats(const bool rounded, const char *staged, float *to)
{
	UNROLL
	for (int v = 0; v < VECTORS; v++) {
		vec rows[4], turned[4];
		UNROLL
		for (int i = 0; i < 4; i++)
			rows[i] = gather_places(staged + (v * LANES + i) * LINE_BYTES, 4 * LINE_BYTES);
		UNROLL
		for (int round = 0; round < 2; round++) {
			UNROLL
			for (int i = 0; i < 2; i++) {
				vec a = rows[i], b = rows[i + 2];
				turned[2 * i] = __builtin_shufflevector(a, b, FLOATS_FROM(0));
				turned[2 * i + 1] = __builtin_shufflevector(a, b, FLOATS_FROM(2));
			}
			memcpy(rows, turned, sizeof(rows));
		}
		UNROLL
		for (int i = 0; i < 4; i++)
			vec_store(to + i * OUTPUTS + v * LANES, rounded_if(rounded, rows[i]));
	}
}

/* The same of eight inputs of 16 bits. */
INLINE void turn_halves(enum smalti_dtype dtype, const bool rounded, const char *staged, float *to)
{
	halves rows[8], turned[8];
	UNROLL
	for (int i = 0; i < 8; i++)
		rows[i] = (halves)gather_places(staged + i * LINE_BYTES, 8 * LINE_BYTES);
	UNROLL
	for (int round = 0; round < 3; round++) {
		UNROLL
		for (int i = 0; i < 4; i++) {
			halves a = rows[i], b = rows[i + 4];
			turned[2 * i] = __builtin_shufflevector(a, b, HALVES_FROM(0));
			turned[2 * i + 1] = __builtin_shufflevector(a, b, HALVES_FROM(4));
		}
		memcpy(rows, turned, sizeof(rows));
	}
	UNROLL
	for (int i = 0; i < 8; i++) {
		UNROLL
		for (int v = 0; v < VECTORS; v++) {
			vec value = vec_read(dtype, &rows[i], v * LANES, LANES);
			vec_store(to + i * OUTPUTS + v * LANES, rounded_if(rounded, value));
		}
	}
}

/* A cache line of each output's inputs, the last output repeated up to OUTPUTS; zeros from `bytes` on. */
INLINE void stage(const char *from, int64_t stride, int64_t outputs, int64_t bytes, char *staged)
{
	for (int64_t o = 0; o < OUTPUTS; o++, staged += LINE_BYTES) {
		if (bytes < LINE_BYTES)
			memset(staged, 0, LINE_BYTES);
		memcpy(staged, from, (size_t)bytes);
		from += o < outputs - 1 ? stride : 0;
	}
}

/* Weights of `outputs` outputs to [depth, OUTPUTS]. */
INLINE void widen(enum smalti_dtype dtype, const bool rounded, const struct panel *panel, int64_t outputs,
		  int64_t depth, float *to)
{
	char staged[OUTPUTS * LINE_BYTES] __attribute__((aligned(LINE_BYTES)));
	const int64_t size = dtype == SMALTI_F32 ? 4 : 2;
	for (int64_t first = 0; first < depth * size; first += LINE_BYTES) {
		const int64_t bytes = smaller(depth * size - first, LINE_BYTES);
		if (bytes == LINE_BYTES)
			stage(panel->from + first, panel->stride, outputs, LINE_BYTES, staged);
		else
			stage(panel->from + first, panel->stride, outputs, bytes, staged);
		for (int64_t at = 0; at < bytes; at += 16) {
			float *turned = to + (first + at) / size * OUTPUTS;
			if (dtype == SMALTI_F32)
				turn_floats(rounded, staged + at, turned);
			else
				turn_halves(dtype, rounded, staged + at, turned);
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

/* What a group of rows fetches of the next weights while it multiplies: bytes of an output's row, one output
 * after the other, from `at` outputs on, `step` further with each input; both in units of 1 / WHOLE. */
struct ahead {
	struct panel panel;
	int64_t bytes, at, step;
};
enum { WHOLE = 1 << 16 };

/* z[rows, OUTPUTS] (+)= Σ x[·, input]·w[input, ·]. */
INLINE void tile(const int rows, int64_t depth, const float *x, const float *w, bool add,
		 const struct ahead *ahead, int64_t z_stride, float *z)
{
	vec sum[ROWS][VECTORS] = {0};
	uint64_t next = (uint64_t)ahead->at, step = (uint64_t)ahead->step;
	for (int64_t k = 0; k < depth; k++, next += step) {
		vec right[VECTORS];
		UNROLL
		for (int v = 0; v < VECTORS; v++)
			right[v] = vec_keep(vec_load(w + k * OUTPUTS + v * LANES));
		__builtin_prefetch(ahead->panel.from + next / WHOLE * (uint64_t)ahead->panel.stride +
				       next % WHOLE * (uint64_t)ahead->bytes / WHOLE,
				   0, 2);
		UNROLL
		for (int r = 0; r < rows; r++) {
			vec left = vec_keep(vec_all(x[r * X_STRIDE + k]));
			UNROLL
			for (int v = 0; v < VECTORS; v++)
				sum[r][v] = vec_fma(left, right[v], sum[r][v]);
		}
	}
	UNROLL
	for (int r = 0; r < rows; r++, z += z_stride) {
		UNROLL
		for (int v = 0; v < VECTORS; v++)
			vec_store(z + v * LANES, add ? vec_load(z + v * LANES) + sum[r][v] : sum[r][v]);
	}
}

static void tile_of(int64_t rows, int64_t depth, const float *x, const float *w, bool add,
		    const struct ahead *ahead, int64_t z_stride, float *z)
{
#define TILE(count)                                                                                          \
	case count:                                                                                          \
		tile(count, depth, x, w, add, ahead, z_stride, z);                                           \
		break
	switch (rows) {
		TILE(1);
		TILE(2);
		TILE(3);
		TILE(4);
		TILE(5);
		TILE(6);
#if VEC_BYTES == 64
		TILE(7);
		TILE(8);
		TILE(9);
		TILE(10);
		TILE(11);
		TILE(12);
		TILE(13);
		TILE(14);
#endif
	}
#undef TILE
}

/* A piece of OUTPUTS outputs with all rows of the block, in groups of nearly the same size. */
static void multiply_panel(const struct cut *cut, const struct work *work, int64_t rows, int64_t depth,
			   const float *x, bool add, struct ahead *ahead, float *z)
{
	const int64_t groups = parts(rows, ROWS);
	ahead->step = OUTPUTS * WHOLE / (groups * depth);
	for (int64_t group = 0, row = 0; group < groups; group++) {
		const int64_t end = rows * (group + 1) / groups;
		ahead->at = OUTPUTS * WHOLE * group / groups;
		tile_of(end - row, depth, x + row * X_STRIDE, work->weights, add, ahead, cut->z_stride,
			z + row * cut->z_stride);
		row = end;
	}
}

/* The inputs first … end − 1 of a block of rows. */
static void multiply_block(const struct smalti_matmul *m, const struct smalti_raw_weight *weight,
			   const struct cut *cut, const struct work *work, int64_t rows, int64_t first,
			   int64_t end)
{
	const int64_t size = smalti_dtype_bytes(weight->dtype), stride = weight->stride * size;
	for (int64_t out = 0; out < m->out; out += OUTPUTS) {
		struct panel panel = {(const char *)weight->data + out * stride + first * size, stride};
		const char *below = panel.from + OUTPUTS * stride;
		const float *x = work->x;
		for (int64_t k = first; k < end; k += cut->depth, x += rows * X_STRIDE) {
			const int64_t depth = smaller(end - k, cut->depth);
			widen_panel(m, weight->dtype, &panel, smaller(m->out - out, OUTPUTS), depth,
				    work->weights);
			panel.from += depth * size;
			struct ahead ahead = {.panel = {k + depth < end ? panel.from : below, stride},
					      .bytes = depth * size};
			multiply_panel(cut, work, rows, depth, x, k > 0, &ahead, work->z + out);
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
		const int64_t rows = smaller(m->rows - row, cut.rows);
		for (int64_t first = 0, end; first < m->in; first = end) {
			end = smaller(m->in, first + cut.pieces * cut.depth);
			/* lay_out() has set it: only those who count give no scratch */
			float *packed = work.x; /* NOLINT(clang-analyzer-core.uninitialized.Assign) */
			for (int64_t k = first; k < end; k += cut.depth, packed += rows * X_STRIDE)
				pack_rows(m, x_stride, x, row * x_stride + k, rows,
					  smaller(end - k, cut.depth), packed);
			multiply_block(m, weight, &cut, &work, rows, first, end);
		}
		const float *z = work.z; /* NOLINT(clang-analyzer-core.uninitialized.Assign) */
		for (int64_t r = 0; r < rows; r++)
			finish_row(m, z + r * cut.z_stride, bias, operand, (row + r) * y_stride, y);
	}
}
