/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/raw_parts.h"
#if defined(__AVX512VNNI__)
#include "kernels/cpu/w8a8_bytes.h"
#else
#include "kernels/cpu/w8a8_pairs.h"
#endif

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
	memset(to, 0, (size_t)x_row_bytes(count));
	for (int64_t k = 0; k<count && * scale> 0; k += LANES) {
		const vec value = vec_read(dtype, x, first + k, count - k) / vec_set1(*scale);
		const vec rounded = vec_barrier(vec_max(vec_min(value, limit), -limit) + magic) - magic;
		const ivec whole = __builtin_convertvector(rounded, ivec);
		for (int64_t i = 0; i < smalti_min(count - k, LANES); i++)
			to[k + i] = (integer)whole[i];
	}
	complete_row(to, count);
}

INLINE void round_rows(enum smalti_dtype dtype, int64_t rows, int64_t in, const void *x, integer *to,
		       float *scales)
{
	for (int64_t r = 0; r < rows; r++)
		round_row(dtype, x, r * in, in, (integer *)((char *)to + r * x_row_bytes(in)), &scales[r]);
}

void FOR_ISA(smalti_w8a8_round)(int64_t rows, int64_t in, enum smalti_dtype dtype, const void *x, void *to,
				float *scales)
{
	integer *integers = to;
	FOR_DTYPE(dtype, round_rows, rows, in, x, integers, scales);
}

void FOR_ISA(smalti_w8a8_sums)(int64_t rows, int64_t in, int64_t out, const void *x, const int8_t *weights,
			       int32_t *sums)
{
	all_sums(rows, in, out, x, weights, sums);
}

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
