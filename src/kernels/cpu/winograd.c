/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/winograd.h"
#include "kernels/cpu/suffix.h"

/* A block of tiles goes through three stages: the points V of its inputs, their products with the weights'
 * points M = V·U point by point, and the outputs. So U, the largest, is read once per block. */
struct block {
	const struct smalti_conv *conv;
	int64_t first, tiles, columns; /* tiles of the band run along its rows, `columns` to a row of tiles */
	int64_t v_stride, m_stride;    /* floats of one point */
	const void *zeros;             /* [in], for pixels outside */
};

/* Computes Bᵀ: six inputs to the six points. */
INLINE void points_of_inputs(const vec d[WINOGRAD_SIDE], vec v[WINOGRAD_SIDE])
{
	const vec near = vec_set1(0x1.6a09e6p-1f), far = vec_set1(0x1.6a09e6p0f);
	const vec minus_two = vec_set1(-2.f), minus_half = vec_set1(-.5f), minus_both = vec_set1(-2.5f);
	const vec even = vec_fma(minus_two, d[2], d[4]), odd = vec_fma(minus_two, d[1], d[3]);
	const vec far_even = vec_fma(minus_half, d[2], d[4]), far_odd = vec_fma(minus_half, d[1], d[3]);
	v[0] = vec_fma(minus_both, d[2], d[4] + d[0]);
	v[1] = vec_fma(near, odd, even);
	v[2] = vec_fma(-near, odd, even);
	v[3] = vec_fma(far, far_odd, far_even);
	v[4] = vec_fma(-far, far_odd, far_even);
	v[5] = vec_fma(minus_both, d[3], d[5] + d[1]);
}

/* Computes Aᵀ: six points to four outputs. */
INLINE void outputs_of_points(const vec m[WINOGRAD_SIDE], vec y[WINOGRAD_TILE])
{
	const vec near = vec_set1(0x1.6a09e6p-1f), far = vec_set1(0x1.6a09e6p0f);
	const vec even = m[1] + m[2], far_even = m[3] + m[4];
	const vec odd = near * (m[1] - m[2]), far_odd = far * (m[3] - m[4]);
	y[0] = m[0] + even + far_even;
	y[1] = odd + far_odd;
	y[2] = vec_fma(vec_set1(.5f), even, far_even + far_even);
	y[3] = vec_fma(vec_set1(.5f), odd, far_odd + far_odd) + m[5];
}

/* Finds the first element of each pixel of a tile's input. */
static void find_pixels(const struct block *b, const void *x, int64_t tile,
			const void *pixels[WINOGRAD_POINTS])
{
	const struct smalti_conv *c = b->conv;
	const int64_t bytes = c->in * smalti_dtype_bytes(c->compute);
	const int64_t top = tile / b->columns * WINOGRAD_TILE, left = tile % b->columns * WINOGRAD_TILE - 1;
	for (int64_t i = 0; i < WINOGRAD_SIDE; i++)
		for (int64_t j = 0; j < WINOGRAD_SIDE; j++) {
			const int64_t row = top + i, column = left + j;
			const bool inside = row < c->rows + 2 && column >= 0 && column < c->width;
			pixels[i * WINOGRAD_SIDE + j] =
			    inside ? (const char *)x + (row * c->width + column) * bytes : b->zeros;
		}
}

/* Transforms one vector of channels of one tile. */
INLINE void transform_inputs(const enum smalti_dtype dtype, const void *const pixels[WINOGRAD_POINTS],
			     int64_t channel, int64_t count, int64_t stride, float *v)
{
	vec rows[WINOGRAD_SIDE][WINOGRAD_SIDE];
	UNROLL
	for (int j = 0; j < WINOGRAD_SIDE; j++) {
		vec d[WINOGRAD_SIDE], points[WINOGRAD_SIDE];
		UNROLL
		for (int i = 0; i < WINOGRAD_SIDE; i++)
			d[i] = vec_read(dtype, pixels[i * WINOGRAD_SIDE + j], channel, count);
		points_of_inputs(d, points);
		UNROLL
		for (int i = 0; i < WINOGRAD_SIDE; i++)
			rows[i][j] = points[i];
	}
	UNROLL
	for (int i = 0; i < WINOGRAD_SIDE; i++) {
		vec points[WINOGRAD_SIDE];
		points_of_inputs(rows[i], points);
		UNROLL
		for (int j = 0; j < WINOGRAD_SIDE; j++)
			vec_store(v + (i * WINOGRAD_SIDE + j) * stride, points[j]);
	}
}

/* Transforms all channels of one tile; `step` floats from a vector of them to the next. */
INLINE void transform_tile(const enum smalti_dtype dtype, const void *const pixels[WINOGRAD_POINTS],
			   int64_t in, int64_t stride, int64_t step, float *v)
{
	for (int64_t i = 0; i < in; i += LANES, v += step) {
		if (in - i >= LANES)
			transform_inputs(dtype, pixels, i, LANES, stride, v);
		else
			transform_inputs(dtype, pixels, i, in - i, stride, v);
	}
}

/* Returns the tiles of a group, [channels / LANES][tile of the group][LANES], as products read it: ROWS, or
 * some steps in the last. */
INLINE int64_t group_rows(const struct block *b, int64_t group)
{
	return smalti_min(smalti_round_up(b->tiles - group, STEP), ROWS);
}

static void read_inputs(const struct block *b, const void *x, float *v)
{
	const int64_t in = b->conv->in, deep = smalti_round_up(in, LANES);
	for (int64_t group = 0; group < b->tiles; group += ROWS) {
		const int64_t rows = group_rows(b, group);
		for (int64_t row = 0; row < rows; row++) {
			const void *pixels[WINOGRAD_POINTS];
			/* Tiles that fill up the last step repeat the last one; their results are not read.
			 */
			find_pixels(b, x, b->first + smalti_min(group + row, b->tiles - 1), pixels);
			float *to = v + group * deep + row * LANES;
			FOR_DTYPE(b->conv->compute, transform_tile, pixels, in, b->v_stride, rows * LANES,
				  to);
		}
	}
}

/* The data that one group of tiles prefetches for later ones, as the hardware would not. */
struct prefetch {
	const float *weights; /* its share of the next panel, per chunk of channels */
	int64_t lines;
	float *products; /* the next group's */
};

enum { AHEAD = 16 };

/* Computes m[rows, vecs vectors] = v · u over all of `deep`. */
INLINE void product(const int rows, const int vecs, int64_t deep, const float *v, const float *u, float *m,
		    int64_t m_row, struct prefetch prefetch)
{
	vec sums[ROWS][VECS] = {0};
	UNROLL
	for (int r = 0; r < rows; r++)
		for (int o = 0; o < vecs; o++)
			__builtin_prefetch(prefetch.products + r * m_row + o * LINE, 1);
	for (int64_t chunk = 0; chunk < deep; chunk += LANES, v += rows * LANES) {
		for (int64_t line = 0; line < prefetch.lines; line++)
			__builtin_prefetch(prefetch.weights + line * LINE, 0, 2);
		prefetch.weights += vecs * LANES * LANES;
		for (int lane = 0; lane < LANES; lane++, u += vecs * LANES) {
			vec weights[VECS];
			UNROLL
			for (int o = 0; o < vecs; o++) {
				weights[o] = vec_load(u + o * LANES);
				__builtin_prefetch(u + (AHEAD * vecs + o) * LANES);
			}
			UNROLL
			for (int r = 0; r < rows; r++) {
				const vec element = vec_set1(v[r * LANES + lane]);
				UNROLL
				for (int o = 0; o < vecs; o++)
					sums[r][o] = vec_fma(element, weights[o], sums[r][o]);
			}
		}
	}
	UNROLL
	for (int r = 0; r < rows; r++) {
		UNROLL
		for (int o = 0; o < vecs; o++)
			vec_store(m + r * m_row + o * LANES, sums[r][o]);
	}
}

INLINE void product_of_group(const int vecs, int64_t rows, int64_t deep, const float *v, const float *u,
			     float *m, int64_t m_row, struct prefetch prefetch)
{
	if (rows == ROWS)
		product(ROWS, vecs, deep, v, u, m, m_row, prefetch);
	else if (rows == 2 * STEP)
		product(2 * STEP, vecs, deep, v, u, m, m_row, prefetch);
	else
		product(STEP, vecs, deep, v, u, m, m_row, prefetch);
}

/* Multiplies one point of all tiles of the block: the nearest caches hold a panel of weights for all of them.
 */
static void multiply(const struct block *b, const float *v, const float *u, float *m)
{
	const int64_t deep = smalti_round_up(b->conv->in, LANES), wide = smalti_round_up(b->conv->out, LANES);
	const int64_t groups = (b->tiles + ROWS - 1) / ROWS;
	const int64_t share = (PANEL * LANES / LINE + groups - 1) / groups;
	for (int64_t panel = 0; panel < wide; panel += PANEL) {
		const int64_t width = smalti_min(wide - panel, PANEL);
		const float *next = u + (panel + width) * deep;
		for (int64_t group = 0; group < b->tiles; group += ROWS, next += share * LINE) {
			const int64_t rows = group_rows(b, group);
			const float *left = v + group * deep, *right = u + panel * deep;
			float *to = m + group * wide + panel;
			const struct prefetch prefetch = {next, share, to + rows * wide};
			if (width == PANEL)
				product_of_group(VECS, rows, deep, left, right, to, wide, prefetch);
			else
				product_of_group(1, rows, deep, left, right, to, wide, prefetch);
		}
	}
}

/* The part of a tile that lies in the band. */
struct target {
	float *y;
	int64_t rows, columns, row_stride, out;
	bool residual;
};

/* Transforms one vector of channels of one tile. */
INLINE void transform_outputs(const float *m, int64_t stride, vec bias, int64_t count,
			      const struct target *target, int64_t channel)
{
	vec rows[WINOGRAD_TILE][WINOGRAD_SIDE];
	UNROLL
	for (int j = 0; j < WINOGRAD_SIDE; j++) {
		vec points[WINOGRAD_SIDE], y[WINOGRAD_TILE];
		UNROLL
		for (int i = 0; i < WINOGRAD_SIDE; i++)
			points[i] = vec_load(m + (i * WINOGRAD_SIDE + j) * stride);
		outputs_of_points(points, y);
		UNROLL
		for (int i = 0; i < WINOGRAD_TILE; i++)
			rows[i][j] = y[i];
	}
	UNROLL
	for (int i = 0; i < WINOGRAD_TILE; i++) {
		vec y[WINOGRAD_TILE];
		if (i >= target->rows)
			break;
		outputs_of_points(rows[i], y);
		UNROLL
		for (int j = 0; j < WINOGRAD_TILE; j++) {
			float *to = target->y + i * target->row_stride + j * target->out;
			if (j >= target->columns)
				break;
			vec sum = y[j] + bias;
			if (target->residual)
				sum += vec_read(SMALTI_F32, to, channel, count);
			vec_write(SMALTI_F32, to, channel, count, sum);
		}
	}
}

static void write_outputs(const struct block *b, const float *m, const float *bias, float *y)
{
	const struct smalti_conv *c = b->conv;
	const int64_t wide = smalti_round_up(c->out, LANES);
	for (int64_t t = 0; t < b->tiles; t++, m += wide) {
		const int64_t row = (b->first + t) / b->columns * WINOGRAD_TILE;
		const int64_t column = (b->first + t) % b->columns * WINOGRAD_TILE;
		const struct target target = {y + (row * c->width + column) * c->out,
					      c->rows - row,
					      c->width - column,
					      c->width * c->out,
					      c->out,
					      c->residual};
		for (int64_t o = 0; o < c->out; o += LANES) {
			const int64_t count = c->out - o;
			transform_outputs(m + o, b->m_stride, vec_read(SMALTI_F32, bias, o, count), count,
					  &target, o);
		}
	}
}

/* Returns the tiles of a block. Many channels need many tiles, as the weights come from memory once per
 * block; with few channels the caches limit the points. */
static int64_t block_tiles(const struct smalti_conv *conv)
{
	return conv->in * conv->out > 256 * 256 ? 128 : 48;
}

/* Returns rows whose input lines fit in the caches and which fill a block. */
int64_t FOR_ISA(smalti_winograd_slab)(const struct smalti_conv *conv)
{
	const int64_t columns = (conv->width + WINOGRAD_TILE - 1) / WINOGRAD_TILE;
	return (block_tiles(conv) + columns - 1) / columns * WINOGRAD_TILE;
}

/* Lays out the stages: their strides are an odd number of cache lines, so that the points of a tile spread
 * over a cache. */
static struct block lay_out(const struct smalti_conv *conv)
{
	const int64_t max = smalti_round_up(block_tiles(conv), STEP);
	struct block b = {.conv = conv, .columns = (conv->width + WINOGRAD_TILE - 1) / WINOGRAD_TILE};
	b.v_stride = smalti_round_up(max * smalti_round_up(conv->in, LANES), 32) + 16;
	b.m_stride = smalti_round_up(max * smalti_round_up(conv->out, LANES), 32) + 16;
	return b;
}

int64_t FOR_ISA(smalti_winograd_scratch)(const struct smalti_conv *conv)
{
	const struct block b = lay_out(conv);
	return WINOGRAD_POINTS * (b.v_stride + b.m_stride) + conv->in;
}

void FOR_ISA(smalti_winograd)(const struct smalti_conv *conv, const void *x, const float *packed,
			      const float *bias, float *y, float *scratch)
{
	struct block b = lay_out(conv);
	const int64_t u_stride = winograd_point_floats(conv->in, conv->out);
	float *v = scratch, *m = v + WINOGRAD_POINTS * b.v_stride, *zeros = m + WINOGRAD_POINTS * b.m_stride;
	memset(zeros, 0, (size_t)conv->in * sizeof(float));
	b.zeros = zeros;
	const int64_t all = (conv->rows + WINOGRAD_TILE - 1) / WINOGRAD_TILE * b.columns;
	const int64_t max = block_tiles(conv);
	for (; b.first < all; b.first += b.tiles) {
		b.tiles = smalti_min(all - b.first, max);
		read_inputs(&b, x, v);
		for (int64_t point = 0; point < WINOGRAD_POINTS; point++)
			multiply(&b, v + point * b.v_stride, packed + point * u_stride,
				 m + point * b.m_stride);
		write_outputs(&b, m, bias, y);
	}
}
