/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/raw_parts.h"
#include "kernels/cpu/w8a8_bytes.h"

/* Both operands lie along the inputs. Where the CPU multiplies bytes, rows of x are bytes: w8a8_bytes.h.
 * Elsewhere they are widened to 16 bits once, those of the weights in registers, where pairs of products are
 * added to sums of 32 bits: 127² · 2 fits. A tile of ROWS × OUTPUTS vectors of sums stays in registers, and
 * their lanes are added at the end. */
#if defined(__AVX512VNNI__)
typedef int8_t integer;
#else
typedef int16_t integer;
#endif
/* Returns the integers from a rounded row of x to the next. */
INLINE int64_t x_stride(int64_t in)
{
	return x_row_bytes(in) / (int64_t)sizeof(integer);
}

/* Returns the largest magnitude of a row; NaN if a value is not finite. */
INLINE float magnitude_of(enum smalti_dtype dtype, const void *x, int64_t first, int64_t count)
{
	vec largest = {0}, check = {0};
	for (int64_t k = 0; k < count; k += LANES) {
		const vec value = vec_read(dtype, x, first + k, count - k);
		largest = vec_max((vec)((ivec)value & 0x7fffffff), largest);
		check += value * 0;
	}
	float result = 0;
	for (int i = 0; i < LANES; i++)
		result = largest[i] > result ? largest[i] : result;
	return result + vec_sum(check);
}

INLINE void round_row(enum smalti_dtype dtype, const void *x, int64_t first, int64_t count, integer *to,
		      float *scale)
{
	const vec magic = vec_set1(0x1.8p23f),
		  limit = vec_set1(127); /* adding it leaves a whole number, ties to even */
	*scale = magnitude_of(dtype, x, first, count) / 127;
	memset(to, 0, (size_t)x_stride(count) * sizeof(*to));
	for (int64_t k = 0; k<count && * scale> 0; k += LANES) {
		const vec value = vec_read(dtype, x, first + k, count - k) / vec_set1(*scale);
		const vec rounded = vec_barrier(vec_max(vec_min(value, limit), -limit) + magic) - magic;
		const ivec whole = __builtin_convertvector(rounded, ivec);
		for (int64_t i = 0; i < smalti_min(count - k, LANES); i++)
			to[k + i] = (integer)whole[i];
	}
#if defined(__AVX512VNNI__)
	put_sum(to, count);
#endif
}

INLINE void round_rows(enum smalti_dtype dtype, int64_t rows, int64_t in, const void *x, integer *to,
		       float *scales)
{
	for (int64_t r = 0; r < rows; r++)
		round_row(dtype, x, r * in, in, to + r * x_stride(in), &scales[r]);
}

void FOR_ISA(smalti_w8a8_round)(int64_t rows, int64_t in, enum smalti_dtype dtype, const void *x, void *to,
				float *scales)
{
	integer *integers = to;
	FOR_DTYPE(dtype, round_rows, rows, in, x, integers, scales);
}

#if defined(__AVX512VNNI__)

void FOR_ISA(smalti_w8a8_sums)(int64_t rows, int64_t in, int64_t out, const void *x, const int8_t *weights,
			       int32_t *sums)
{
	byte_sums(rows, in, out, x, weights, sums);
}

#else

enum { ROWS = 4, OUTPUTS = 3, STEP = VEC_BYTES / 2 /* inputs at a time */ };

typedef int16_t svec __attribute__((vector_size(VEC_BYTES)));
typedef int8_t cvec __attribute__((vector_size(VEC_BYTES / 2)));

/* Returns the sums of pairs of products. */
INLINE ivec pairs_of(svec a, svec b)
{
#if defined(__AVX512F__)
	return (ivec)_mm512_madd_epi16((__m512i)a, (__m512i)b);
#elif defined(__AVX2__)
	return (ivec)_mm256_madd_epi16((__m256i)a, (__m256i)b);
#elif defined(__SSE2__)
	return (ivec)_mm_madd_epi16((__m128i)a, (__m128i)b);
#else
	ivec sums;
	for (int i = 0; i < LANES; i++)
		sums[i] = a[2 * i] * b[2 * i] + a[2 * i + 1] * b[2 * i + 1];
	return sums;
#endif
}

INLINE svec widened(const int8_t *from)
{
	cvec integers;
	memcpy(&integers, from, sizeof(integers));
	return __builtin_convertvector(integers, svec);
}

INLINE int32_t sum_of(ivec lanes)
{
	int32_t sum = 0;
	for (int i = 0; i < LANES; i++)
		sum += lanes[i];
	return sum;
}

/* Computes a tile of sums. */
INLINE void tile(const int rows, const int outputs, int64_t in, const int16_t *x, const int8_t *weights,
		 int64_t out, int32_t *sums)
{
	ivec sum[ROWS][OUTPUTS] = {0};
	for (int64_t k = 0; k < in; k += STEP) {
		svec right[OUTPUTS];
		UNROLL
		for (int o = 0; o < outputs; o++)
			right[o] = widened(weights + o * smalti_int8_stride(in) + k);
		UNROLL
		for (int r = 0; r < rows; r++) {
			svec left;
			memcpy(&left, x + r * x_stride(in) + k, sizeof(left));
			UNROLL
			for (int o = 0; o < outputs; o++)
				sum[r][o] += pairs_of(left, right[o]);
		}
	}
	for (int r = 0; r < rows; r++)
		for (int o = 0; o < outputs; o++)
			sums[r * out + o] = sum_of(sum[r][o]);
}

INLINE void tiles_of(const int outputs, int64_t rows, int64_t in, const int16_t *x, const int8_t *weights,
		     int64_t out, int32_t *sums)
{
	int64_t r = 0;
	for (; r + ROWS <= rows; r += ROWS)
		tile(ROWS, outputs, in, x + r * x_stride(in), weights, out, sums + r * out);
	for (; r < rows; r++)
		tile(1, outputs, in, x + r * x_stride(in), weights, out, sums + r * out);
}

void FOR_ISA(smalti_w8a8_sums)(int64_t rows, int64_t in, int64_t out, const void *x, const int8_t *weights,
			       int32_t *sums)
{
	int64_t o = 0;
	for (; o + OUTPUTS <= out; o += OUTPUTS)
		tiles_of(OUTPUTS, rows, in, x, weights + o * smalti_int8_stride(in), out, sums + o);
	for (; o < out; o++)
		tiles_of(1, rows, in, x, weights + o * smalti_int8_stride(in), out, sums + o);
}

#endif

/* Sums become z in their place, row by row. */
void FOR_ISA(smalti_w8a8_finish)(const struct smalti_matmul *m, int64_t row, int64_t rows,
				 const float *scales, const void *weights, const float *bias,
				 const void *operand, int32_t *sums, void *y)
{
	const struct smalti_raw_weight weight = {weights, SMALTI_I8, smalti_int8_stride(m->in)};
	for (int64_t r = 0; r < rows; r++)
		for (int64_t first = 0; first < m->out; first += LINE) {
			float z[LINE];
			const int64_t count = smalti_min(LINE, m->out - first);
			for (int64_t i = 0; i < count; i++)
				z[i] = (float)sums[r * m->out + first + i] *
				       (scales[r] * scale_of(&weight, m->in, first + i));
			finish_row(m, first, first + count, z, bias, operand, (row + r) * m->out, y);
		}
}
