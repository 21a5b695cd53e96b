/* SPDX-License-Identifier: Apache-2.0
 *
 * Around a 3×3 convolution (kernels/conv_band.h), which is a product of patches and the weight
 * [out, 3, 3, in]. */

/* Element (row, column, channel) of what is convolved, zero beyond the map: x, whose rows may be shown twice
 * (upsample), with GroupNorm and SiLU when there are coefficients [2, in]. */
DEVICE float convolved(GLOBAL const float *x, GLOBAL const float *above, GLOBAL const float *below,
		       GLOBAL const float *coefficients, int64_t row, int64_t column, int64_t channel,
		       const struct conv_arguments *a)
{
	const int64_t scale = a->upsample ? 2 : 1;
	GLOBAL const float *line = row < 0                  ? above
				   : row >= scale * a->rows ? below
							    : x + row / scale * a->width * a->in;
	if (!line || column < 0 || column >= scale * a->width)
		return 0;
	const float value = line[column / scale * a->in + channel];
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

/* The same as conv_patches of rows that are made, in chunks: a thread for each. */
KERNEL(copy_patches)(GLOBAL const struct chunk *rows, GLOBAL struct chunk *patches, struct copy_patches_arguments a)
{
	const int64_t part = INDEX % a.chunks, tap = INDEX / a.chunks % 9, pixel = INDEX / (9 * a.chunks);
	const int64_t row = pixel / a.columns * a.stride + tap / 3;
	const int64_t column = pixel % a.columns * a.stride + tap % 3 - (a.stride == 2 ? 0 : 1);
	struct chunk chunk = {{0, 0, 0, 0}};
	if (pixel >= a.rows * a.columns)
		return;
	if (column >= 0 && column < a.width)
		chunk = rows[(row * a.width + column) * a.chunks + part];
	patches[INDEX] = chunk;
}

/* y from element `first` on (+)= map + bias, a row of channels again and again. A thread for each element. */
KERNEL(add_map)(GLOBAL const void *map, GLOBAL const float *bias, GLOBAL float *y, struct add_map_arguments a)
{
	if (INDEX >= a.count)
		return;
	const float sum = load_element(map, a.dtype, INDEX) + bias[INDEX % a.dim];
	y[a.first + INDEX] = a.adds ? y[a.first + INDEX] + sum : sum;
}

/* The same of a map in bf16, whose channels are whole chunks of eight: a thread for each chunk. */
KERNEL(add_map_chunks)(GLOBAL const struct chunk *map, GLOBAL const struct chunk *bias, GLOBAL struct chunk *y,
		       struct add_map_arguments a)
{
	const int64_t column = INDEX % (a.dim / 8);
	if (INDEX >= a.count / 8)
		return;
	const struct chunk values = map[INDEX];
	UNROLL
	for (int part = 0; part < 2; part++) {
		const int64_t place = a.first / 4 + 2 * INDEX + part;
		const struct chunk row = bias[2 * column + part];
		struct chunk sums = {{0, 0, 0, 0}};
		if (a.adds)
			sums = y[place];
		UNROLL
		for (int i = 0; i < 4; i++) {
			const uint pair = values.words[2 * part + i / 2];
			const float value = FLOAT_OF_BITS(i % 2 ? pair & 0xffff0000u : pair << 16);
			const float sum = value + FLOAT_OF_BITS(row.words[i]);
			sums.words[i] = BITS_OF_FLOAT(a.adds ? FLOAT_OF_BITS(sums.words[i]) + sum : sum);
		}
		y[place] = sums;
	}
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
