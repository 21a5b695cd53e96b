/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sums of products of integers, for either form of them: w8a8_bytes.h or w8a8_pairs.h, which is included
 * before. Both operands lie along the inputs. A tile of ROWS × OUTPUTS vectors of sums stays in registers,
 * and their lanes are added at the end. */

INLINE const integer *row_of(const void *x, int64_t row, int64_t in)
{
	return (const integer *)((const char *)x + row * x_row_bytes(in));
}

/* Computes a tile of sums. */
INLINE void tile(const int rows, const int outputs, int64_t in, const void *x, const int8_t *weights,
		 int64_t out, int32_t *sums)
{
	ivec sum[ROWS][OUTPUTS] = {0};
	for (int64_t k = 0; k < in; k += STEP) {
		weight_vector right[OUTPUTS];
		UNROLL
		for (int o = 0; o < outputs; o++)
			right[o] = load_weights(weights + o * smalti_int8_stride(in) + k, in - k);
		UNROLL
		for (int r = 0; r < rows; r++) {
			x_vector left;
			memcpy(&left, row_of(x, r, in) + k, sizeof(left));
			UNROLL
			for (int o = 0; o < outputs; o++)
				sum[r][o] = add_products(sum[r][o], right[o], left);
		}
	}
	for (int r = 0; r < rows; r++)
		for (int o = 0; o < outputs; o++)
			sums[r * out + o] = sum_of(sum[r][o], row_of(x, r, in), in);
}

INLINE void tiles_of(const int outputs, int64_t rows, int64_t in, const void *x, const int8_t *weights,
		     int64_t out, int32_t *sums)
{
	int64_t r = 0;
	for (; r + ROWS <= rows; r += ROWS)
		tile(ROWS, outputs, in, row_of(x, r, in), weights, out, sums + r * out);
	for (; r < rows; r++)
		tile(1, outputs, in, row_of(x, r, in), weights, out, sums + r * out);
}

INLINE void all_sums(int64_t rows, int64_t in, int64_t out, const void *x, const int8_t *weights,
		     int32_t *sums)
{
	int64_t o = 0;
	for (; o + OUTPUTS <= out; o += OUTPUTS)
		tiles_of(OUTPUTS, rows, in, x, weights + o * smalti_int8_stride(in), out, sums + o);
	for (; o < out; o++)
		tiles_of(1, rows, in, x, weights + o * smalti_int8_stride(in), out, sums + o);
}
