/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/suffix.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/groupnorm.h"

#include <math.h>

/* A row is summed in several vectors in turn: chains of additions are shorter, and errors smaller. */
enum { SUMS = 4 };
enum { LINE_FLOATS = 16 };

INLINE float sum_all(const vec sums[SUMS])
{
	return vec_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
}

/* Returns what sums[turn] adds of the row's elements from `i` on: zeros past its end. */
INLINE vec read_turn(int64_t dim, const float *x, int64_t i, int turn)
{
	i += turn * LANES;
	return i < dim ? vec_read(SMALTI_F32, x, i, dim - i) : (vec){0};
}

static float mean_of(int64_t dim, const float *x)
{
	vec sums[SUMS] = {0};
	for (int64_t i = 0; i < dim; i += SUMS * LANES) {
		UNROLL
		for (int j = 0; j < SUMS; j++)
			sums[j] += read_turn(dim, x, i, j);
	}
	return sum_all(sums) / (float)dim;
}

/* Sets lanes past the end to 0. */
INLINE vec vec_trim(vec value, int64_t count)
{
	if (count >= LANES)
		return value;
	float lanes[LANES];
	vec_store(lanes, value);
	return vec_load_some(lanes, count > 0 ? count : 0);
}

/* A row's values are normalised as ((x − origin) − offset)·factor. */
struct normal {
	float origin, offset, factor;
};

/* The first mean, rounded to f32, is only a shift: deviations from it correct it, so that a mean much larger
 * than the deviations costs no accuracy. */
static struct normal normal_of(int64_t dim, const float *x, float epsilon)
{
	float origin = mean_of(dim, x);
	vec sums[SUMS] = {0}, squares[SUMS] = {0};
	for (int64_t i = 0; i < dim; i += SUMS * LANES) {
		UNROLL
		for (int j = 0; j < SUMS; j++) {
			vec deviation = vec_trim(read_turn(dim, x, i, j) - origin, dim - i - j * LANES);
			sums[j] += deviation;
			squares[j] = vec_fma(deviation, deviation, squares[j]);
		}
	}
	float offset = sum_all(sums) / (float)dim;
	float variance = sum_all(squares) / (float)dim - offset * offset;
	return (struct normal){origin, offset, 1.f / sqrtf((variance < 0 ? 0 : variance) + epsilon)};
}

INLINE vec normalize(vec x, const struct normal *n)
{
	return ((x - n->origin) - n->offset) * n->factor;
}

static void layernorm_row(int64_t dim, const float *x, float epsilon, const float *shift, const float *scale,
			  enum smalti_dtype dtype, void *y, int64_t at)
{
	const struct normal n = normal_of(dim, x, epsilon);
	for (int64_t i = 0; i < dim; i += LANES) {
		vec normal = normalize(vec_read(SMALTI_F32, x, i, dim - i), &n);
		vec gain = vec_read(SMALTI_F32, scale, i, dim - i) + 1.f;
		vec result = vec_fma(normal, gain, vec_read(SMALTI_F32, shift, i, dim - i));
		vec_write(dtype, y, at + i, dim - i, result);
	}
}

void FOR_ISA(smalti_layernorm_modulate)(int64_t rows, int64_t dim, const float *x, float epsilon,
					const float *shift, const float *scale, enum smalti_dtype dtype,
					void *y)
{
	for (int64_t row = 0; row < rows; row++)
		layernorm_row(dim, x + row * dim, epsilon, shift, scale, dtype, y, row * dim);
}

/* Computes, with n the normalised row and g = gy ⊙ (1 + scale), gx = factor·(g − mean(g) − n·mean(g ⊙ n)),
 * gshift += gy, gscale += gy ⊙ n. */
static void layernorm_row_backward(const struct smalti_layernorm_backward *l, const float *x,
				   const float *scale, const float *gy, float *gx, float *gshift,
				   float *gscale)
{
	const int64_t dim = l->dim;
	const struct normal n = normal_of(dim, x, l->epsilon);
	vec sums[SUMS] = {0}, products[SUMS] = {0};
	for (int64_t i = 0; i < dim; i += SUMS * LANES) {
		UNROLL
		for (int j = 0; j < SUMS; j++) {
			vec normal = normalize(read_turn(dim, x, i, j), &n);
			vec g = read_turn(dim, gy, i, j) * (read_turn(dim, scale, i, j) + 1.f);
			sums[j] += g;
			products[j] = vec_fma(g, normal, products[j]);
		}
	}
	const float mean = sum_all(sums) / (float)dim, product = sum_all(products) / (float)dim;
	for (int64_t i = 0; i < dim; i += LANES) {
		const int64_t left = dim - i;
		const vec normal = normalize(vec_read(SMALTI_F32, x, i, left), &n);
		const vec given = vec_read(SMALTI_F32, gy, i, left);
		const vec g = given * (vec_read(SMALTI_F32, scale, i, left) + 1.f);
		const vec result = (g - mean - normal * product) * n.factor;
		vec_write(SMALTI_F32, gx, i, left,
			  l->add ? vec_read(SMALTI_F32, gx, i, left) + result : result);
		vec_write(SMALTI_F32, gshift, i, left, vec_read(SMALTI_F32, gshift, i, left) + given);
		vec_write(SMALTI_F32, gscale, i, left,
			  vec_fma(given, normal, vec_read(SMALTI_F32, gscale, i, left)));
	}
}

void FOR_ISA(smalti_layernorm_modulate_backward)(const struct smalti_layernorm_backward *layernorm,
						 const float *x, const float *scale, const float *gy,
						 float *gx, float *gshift, float *gscale)
{
	const int64_t dim = layernorm->dim;
	for (int64_t row = 0; row < layernorm->rows; row++)
		layernorm_row_backward(layernorm, x + row * dim, scale, gy + row * dim, gx + row * dim,
				       gshift, gscale);
}

static void rmsnorm_row(int64_t dim, const float *x, float epsilon, const float *weight,
			enum smalti_dtype dtype, void *y, int64_t at)
{
	vec squares[SUMS] = {0};
	for (int64_t i = 0; i < dim; i += SUMS * LANES) {
		UNROLL
		for (int j = 0; j < SUMS; j++) {
			vec value = read_turn(dim, x, i, j);
			squares[j] = vec_fma(value, value, squares[j]);
		}
	}
	float factor = 1.f / sqrtf(sum_all(squares) / (float)dim + epsilon);
	for (int64_t i = 0; i < dim; i += LANES) {
		vec normal = vec_read(SMALTI_F32, x, i, dim - i) * factor;
		vec_write(dtype, y, at + i, dim - i, normal * vec_read(SMALTI_F32, weight, i, dim - i));
	}
}

void FOR_ISA(smalti_rmsnorm)(int64_t rows, int64_t dim, const float *x, float epsilon, const float *weight,
			     enum smalti_dtype dtype, void *y)
{
	for (int64_t row = 0; row < rows; row++)
		rmsnorm_row(dim, x + row * dim, epsilon, weight, dtype, y, row * dim);
}

/* Half the lanes of a vec, at the same width in double precision. */
typedef double dvec __attribute__((vector_size(VEC_BYTES)));
typedef float halfvec __attribute__((vector_size(VEC_BYTES / 2)));
enum { HALF = LANES / 2 };

INLINE dvec widen_half(const float *from)
{
#if defined(__AVX512F__) /* the compiler's own conversion is two half ones */
	return (dvec)_mm512_cvtps_pd(_mm256_loadu_ps(from));
#elif defined(__AVX2__)
	return (dvec)_mm256_cvtps_pd(_mm_loadu_ps(from));
#else
	halfvec value;
	memcpy(&value, from, sizeof(value));
	return __builtin_convertvector(value, dvec);
#endif
}

INLINE dvec load_doubles(const double *from)
{
	dvec value;
	memcpy(&value, from, sizeof(value));
	return value;
}

/* Channels whose sums are kept at a time, pixels that stay in the first cache meanwhile, and vectors whose
 * sums stay in registers: fewer would be chains of additions. */
enum { SLAB = 512, PIXELS = 8, VECTORS = 4 };

struct sums {
	double shift[SLAB], sum[SLAB], squares[SLAB];
};

/* Adds `vectors` times HALF channels of a block of pixels to the sums. Prefetches the next block: its pieces
 * are too far apart for the hardware to do so. */
INLINE void add_vectors(const int vectors, int64_t pixels, int64_t channels, const float *x, int at,
			struct sums *sums)
{
	dvec shift[VECTORS], sum[VECTORS], squares[VECTORS];
	UNROLL
	for (int v = 0; v < vectors; v++) {
		shift[v] = load_doubles(sums->shift + at + v * HALF);
		sum[v] = load_doubles(sums->sum + at + v * HALF);
		squares[v] = load_doubles(sums->squares + at + v * HALF);
	}
	x += at;
	for (int64_t pixel = 0; pixel < pixels; pixel++, x += channels) {
		UNROLL
		for (int v = 0; v < vectors; v++) {
			dvec deviation = widen_half(x + v * HALF) - shift[v];
			if (v * HALF % LINE_FLOATS == 0)
				__builtin_prefetch(x + PIXELS * channels + v * HALF);
			sum[v] += deviation;
			squares[v] += deviation * deviation;
		}
	}
	UNROLL
	for (int v = 0; v < vectors; v++) {
		memcpy(sums->sum + at + v * HALF, &sum[v], sizeof(sum[v]));
		memcpy(sums->squares + at + v * HALF, &squares[v], sizeof(squares[v]));
	}
}

static void add_channel(int64_t pixels, int64_t channels, const float *x, int at, struct sums *sums)
{
	for (int64_t pixel = 0; pixel < pixels; pixel++) {
		double value = x[pixel * channels + at] - sums->shift[at];
		sums->sum[at] += value;
		sums->squares[at] += value * value;
	}
}

/* Sums deviations from the first pixel: their squares do not cancel when the mean is large. */
static void sum_slab(int64_t pixels, int64_t channels, const float *x, int width, struct sums *sums)
{
	for (int at = 0; at < width; at++) {
		sums->shift[at] = x[at];
		sums->sum[at] = sums->squares[at] = 0;
	}
	for (int64_t from = 0; from < pixels; from += PIXELS) {
		int64_t block = pixels - from < PIXELS ? pixels - from : PIXELS;
		const float *first = x + from * channels;
		int at = 0;
		for (; at + VECTORS * HALF <= width; at += VECTORS * HALF)
			add_vectors(VECTORS, block, channels, first, at, sums);
		for (; at + HALF <= width; at += HALF)
			add_vectors(1, block, channels, first, at, sums);
		for (; at < width; at++)
			add_channel(block, channels, first, at, sums);
	}
}

void FOR_ISA(smalti_groupnorm_moments)(int64_t pixels, int64_t channels, int64_t groups, const float *x,
				       struct smalti_moments *moments)
{
	for (int64_t group = 0; group < groups; group++)
		moments[group] = (struct smalti_moments){0};
	int64_t width_of_group = channels / groups;
	if (!pixels || !width_of_group)
		return;
	struct sums sums;
	double count = (double)pixels;
	for (int64_t from = 0; from < channels; from += SLAB) {
		int width = (int)(channels - from < SLAB ? channels - from : SLAB);
		sum_slab(pixels, channels, x + from, width, &sums);
		for (int at = 0; at < width; at++) {
			double offset = sums.sum[at] / count;
			struct smalti_moments channel = {count, sums.shift[at] + offset,
							 sums.squares[at] - sums.sum[at] * offset};
			smalti_moments_merge(1, &channel, &moments[(from + at) / width_of_group]);
		}
	}
}

INLINE void apply_rows(const enum smalti_dtype dtype, const bool silu, int64_t rows, int64_t channels,
		       const float *x, const float *a, const float *b, int64_t at, void *y)
{
	for (int64_t row = 0; row < rows; row++, at += channels) {
		for (int64_t i = 0; i < channels; i += LANES) {
			int64_t count = channels - i;
			vec value =
			    vec_fma(vec_read(SMALTI_F32, x, at + i, count), vec_read(SMALTI_F32, a, i, count),
				    vec_read(SMALTI_F32, b, i, count));
			vec_write(dtype, y, at + i, count, silu ? vec_silu(value) : value);
		}
	}
}

static void apply(bool silu, enum smalti_dtype dtype, int64_t rows, int64_t channels, const float *x,
		  const float *a, const float *b, int64_t at, void *y)
{
	if (silu)
		FOR_DTYPE(dtype, apply_rows, true, rows, channels, x, a, b, at, y);
	else
		FOR_DTYPE(dtype, apply_rows, false, rows, channels, x, a, b, at, y);
}

/* Normalises; pixels with few channels share a vector, when they fill it. */
void FOR_ISA(smalti_groupnorm_apply)(int64_t pixels, int64_t channels, const float *x, const float *a,
				     const float *b, bool silu, enum smalti_dtype dtype, void *y)
{
	int64_t done = 0;
	if (channels > 0 && channels < LANES && LANES % channels == 0) {
		float wide_a[LANES], wide_b[LANES];
		for (int i = 0; i < LANES; i++) {
			wide_a[i] = a[i % channels];
			wide_b[i] = b[i % channels];
		}
		int64_t rows = pixels / (LANES / channels);
		apply(silu, dtype, rows, LANES, x, wide_a, wide_b, 0, y);
		done = rows * (LANES / channels);
	}
	apply(silu, dtype, pixels - done, channels, x, a, b, done * channels, y);
}
