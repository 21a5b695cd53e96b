/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/raw_parts.h"
#include "kernels/cpu/w8a8_tiles.h"

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
	typedef integer integers __attribute__((vector_size(LANES * sizeof(integer))));
	const vec magic = vec_set1(0x1.8p23f), /* adding it leaves a whole number, ties to even */
	    limit = vec_set1(127);
	ivec sums = {0};
	int32_t sum = 0;
	*scale = magnitude_of(dtype, x, first, count) / 127;
	memset(to, 0, (size_t)x_row_bytes(count));
	for (int64_t k = 0; k<count && * scale> 0; k += LANES) {
		const vec value = vec_read(dtype, x, first + k, count - k) / vec_set1(*scale);
		const vec rounded = vec_barrier(vec_max(vec_min(value, limit), -limit) + magic) - magic;
		const ivec whole = __builtin_convertvector(rounded, ivec);
		const integers narrow = __builtin_convertvector(whole, integers);
		sums += whole;
		memcpy(to + k, &narrow, (size_t)smalti_min(count - k, LANES) * sizeof(integer));
	}
	for (int i = 0; i < LANES; i++)
		sum += sums[i];
	complete_row(to, x_row_bytes(count), sum);
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

enum { COLUMNS = 64 }; /* whose results are finished together */

/* Computes z of one row's sums from the scales of the row and of the outputs. */
INLINE void scale_sums(const int32_t *sums, float scale, const float *scales, int64_t count, float *z)
{
	for (int64_t i = 0; i < count; i += LANES) {
		const ivec sum = (ivec)vec_load_some(sums + i, smalti_min(count - i, LANES));
		vec_store(z + i,
			  __builtin_convertvector(sum, vec) * (vec_set1(scale) * vec_load(scales + i)));
	}
}

void FOR_ISA(smalti_w8a8_finish)(const struct smalti_matmul *m, const struct smalti_part *part,
				 const float *scales, const void *weights, const float *bias,
				 const void *operand, const int32_t *sums, void *y)
{
	const struct smalti_raw_weight weight = {weights, SMALTI_I8, smalti_rows8_stride(m->in)};
	for (int64_t done = 0; done < part->count; done += COLUMNS) {
		float of_outputs[COLUMNS] = {0}, z[COLUMNS];
		const int64_t first = part->first + done, count = smalti_min(COLUMNS, part->count - done);
		for (int64_t i = 0; i < count; i++)
			of_outputs[i] = scale_of(&weight, m->in, first + i);
		for (int64_t r = 0; r < part->rows; r++) {
			scale_sums(sums + r * part->count + done, scales[r], of_outputs, count, z);
			finish_row(m, first, first + count, z, bias, operand, (part->row + r) * m->out, y);
		}
	}
}
