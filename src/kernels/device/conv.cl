/* SPDX-License-Identifier: Apache-2.0
 *
 * Around a 3×3 convolution (kernels/conv_band.h), which is a product of patches and the weight
 * [out, 3, 3, in]. */

/* patches [rows, width of the result, 3, 3, in]: GroupNorm and SiLU of x when there are coefficients
 * [2, in], rounded to `compute`; zeros beyond the map. A thread for each element. */
KERNEL(conv_patches)(GLOBAL const float *x, GLOBAL const float *above, GLOBAL const float *below,
		     GLOBAL const float *coefficients, GLOBAL void *patches, struct conv_patches_arguments a)
{
	const int64_t scale = a.conv.upsample ? 2 : 1, before = a.conv.stride == 2 ? 0 : 1;
	const int64_t width = scale * a.conv.width, height = scale * a.conv.rows;
	const int64_t channel = INDEX % a.conv.in, tap = INDEX / a.conv.in % 9;
	const int64_t pixel = INDEX / (9 * a.conv.in), columns = width / a.conv.stride;
	const int64_t row = (a.first_row + pixel / columns) * a.conv.stride + tap / 3 - before;
	const int64_t column = pixel % columns * a.conv.stride + tap % 3 - before;
	if (pixel >= a.rows * columns)
		return;
	GLOBAL const float *line = row < 0         ? above
				   : row >= height ? below
						   : x + row / scale * a.conv.width * a.conv.in;
	float value = 0;
	if (line && column >= 0 && column < width) {
		value = line[column / scale * a.conv.in + channel];
		if (coefficients)
			value = silu_of(fma(coefficients[channel], value, coefficients[a.conv.in + channel]));
	}
	store_element(patches, a.result, INDEX, rounded_to(a.conv.compute, value));
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
