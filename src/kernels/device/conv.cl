/* SPDX-License-Identifier: Apache-2.0
 *
 * Around a 3×3 convolution (kernels/conv_band.h), which is a product of patches and the weight
 * [out, 3, 3, in]. */

/* Returns a row of what is convolved, of which `upsample` shows each twice; NULL beyond the map. */
DEVICE GLOBAL const float *convolved_row(GLOBAL const float *x, GLOBAL const float *above,
					 GLOBAL const float *below, int64_t row,
					 const struct conv_arguments *a)
{
	const int doubled = a->upsample ? 1 : 0;
	return row < 0                      ? above
	       : row >= a->rows << doubled ? below
					   : x + (row >> doubled) * a->width * a->in;
}

/* Returns element (row, column, channel) of what is convolved, zero beyond the map: x with GroupNorm and SiLU when there are
 * coefficients [2, in]. */
DEVICE float convolved(GLOBAL const float *x, GLOBAL const float *above, GLOBAL const float *below,
		       GLOBAL const float *coefficients, int64_t row, int64_t column, int64_t channel,
		       const struct conv_arguments *a)
{
	const int doubled = a->upsample ? 1 : 0;
	GLOBAL const float *line = convolved_row(x, above, below, row, a);
	if (!line || column < 0 || column >= a->width << doubled)
		return 0;
	const float value = line[(column >> doubled) * a->in + channel];
	if (!coefficients)
		return value;
	return silu_of(fma(coefficients[channel], value, coefficients[a->in + channel]));
}

/* patches [rows, width of the result, 3, 3, in], rounded to `compute`. A thread for each element. */
KERNEL(conv_patches)(GLOBAL const float *x, GLOBAL const float *above, GLOBAL const float *below,
		     GLOBAL const float *coefficients, GLOBAL void *patches, struct conv_patches_arguments a)
{
	const int64_t scale = a.conv.upsample ? 2 : 1, before = a.conv.stride == 2 ? 0 : 1;
	const int64_t columns = scale * a.conv.width / a.conv.stride;
	const int64_t channel = INDEX % a.conv.in, tap = INDEX / a.conv.in % 9;
	const int64_t pixel = INDEX / (9 * a.conv.in);
	const int64_t row = (a.first_row + pixel / columns) * a.conv.stride + tap / 3 - before;
	const int64_t column = pixel % columns * a.conv.stride + tap % 3 - before;
	if (pixel >= a.rows * columns)
		return;
	const float value = convolved(x, above, below, coefficients, row, column, channel, &a.conv);
	store_element(patches, a.result, INDEX, rounded_to(a.conv.compute, value));
}

/* rows [rows, width, in] from row first_row on, which may be −1, rounded to `compute`. A thread for each
 * element. */
KERNEL(conv_rows)(GLOBAL const float *x, GLOBAL const float *above, GLOBAL const float *below,
		  GLOBAL const float *coefficients, GLOBAL void *rows, struct conv_patches_arguments a)
{
	const int64_t columns = (a.conv.upsample ? 2 : 1) * a.conv.width;
	const int64_t channel = INDEX % a.conv.in, pixel = INDEX / a.conv.in;
	const int64_t row = a.first_row + pixel / columns, column = pixel % columns;
	if (pixel >= a.rows * columns)
		return;
	const float value = convolved(x, above, below, coefficients, row, column, channel, &a.conv);
	store_element(rows, a.result, INDEX, rounded_to(a.conv.compute, value));
}

/* Does the same in eights of channels, of which a thread has one; `compute` is `result`. */
DEVICE void convolve_eight(enum smalti_dtype dtype, GLOBAL const float *x, GLOBAL const float *above,
			   GLOBAL const float *below, GLOBAL const float *coefficients, GLOBAL void *rows,
			   const struct conv_patches_arguments *a)
{
	const int doubled = a->conv.upsample ? 1 : 0;
	const uint i = (uint)INDEX, eights = (uint)a->conv.in / 8, columns = (uint)a->conv.width << doubled;
	const uint pixel = i / eights, channel = i - pixel * eights, row = pixel / columns;
	float values[8] = {0}, factors[8], offsets[8];
	if (INDEX >= a->rows * columns * eights)
		return;
	GLOBAL const float *line = convolved_row(x, above, below, a->first_row + row, &a->conv);
	if (line)
		load_eight(line, SMALTI_F32, (int64_t)((pixel - row * columns) >> doubled) * eights + channel, values);
	if (line && coefficients) {
		load_eight(coefficients, SMALTI_F32, channel, factors);
		load_eight(coefficients, SMALTI_F32, eights + channel, offsets);
		UNROLL
		for (int j = 0; j < 8; j++)
			values[j] = silu_of(fma(factors[j], values[j], offsets[j]));
	}
	store_eight(rows, dtype, i, values);
}

KERNEL_FORMS(conv_rows, (GLOBAL const float *x, GLOBAL const float *above, GLOBAL const float *below,
	GLOBAL const float *coefficients, GLOBAL void *rows, struct conv_patches_arguments a),
	convolve_eight(dtype, x, above, below, coefficients, rows, &a);)

/* The same as conv_patches of rows that are made, in chunks: a thread for each. */
KERNEL(copy_patches)(GLOBAL const struct chunk *rows, GLOBAL struct chunk *patches, struct copy_patches_arguments a)
{
	const uint i = (uint)INDEX, chunks = (uint)a.chunks, columns = (uint)a.columns;
	const uint tile = i / chunks, pixel = tile / 9, tap = tile % 9;
	const int64_t row = pixel / columns * a.stride + tap / 3;
	const int64_t column = pixel % columns * a.stride + tap % 3 - (a.stride == 2 ? 0 : 1);
	struct chunk chunk = {{0, 0, 0, 0}};
	if (pixel >= a.rows * a.columns)
		return;
	if (column >= 0 && column < a.width)
		chunk = rows[(row * a.width + column) * a.chunks + i % chunks];
	patches[i] = chunk;
}

/* y from element `first` on (+)= map + bias, a row of channels again and again. A thread for each element. */
KERNEL(add_map)(GLOBAL const void *map, GLOBAL const float *bias, GLOBAL float *y, struct add_map_arguments a)
{
	if (INDEX >= a.count)
		return;
	const float sum = load_element(map, a.dtype, INDEX) + bias[INDEX % a.dim];
	y[a.first + INDEX] = a.adds ? y[a.first + INDEX] + sum : sum;
}

/* Does the same with a map in bf16, in eights of channels, of which a thread has one. */
KERNEL(add_map_bf16)(GLOBAL const void *map, GLOBAL const float *bias, GLOBAL float *y, struct add_map_arguments a)
{
	const uint i = (uint)INDEX;
	float values[8], offsets[8], sums[8] = {0};
	if (INDEX >= a.count / 8)
		return;
	load_eight(map, SMALTI_BF16, i, values);
	load_eight(bias, SMALTI_F32, i % ((uint)a.dim / 8), offsets);
	if (a.adds)
		load_eight(y, SMALTI_F32, a.first / 8 + i, sums);
	UNROLL
	for (int j = 0; j < 8; j++)
		sums[j] += values[j] + offsets[j];
	store_eight(y, SMALTI_F32, a.first / 8 + i, sums);
}

/* The first and the last of x's rows, those that are wanted: a thread for each element. */
KERNEL(copy_edges)(GLOBAL const float *x, GLOBAL float *top, GLOBAL float *bottom,
		   struct copy_edges_arguments a)
{
	if (INDEX >= a.row)
		return;
	if (top)
		top[INDEX] = x[INDEX];
	if (bottom)
		bottom[INDEX] = x[(a.rows - 1) * a.row + INDEX];
}
