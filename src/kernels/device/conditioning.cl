/* SPDX-License-Identifier: Apache-2.0
 *
 * What tells a transformer where, when and how large (kernels/conditioning.h). */

/* y [rows, 256]: a thread for each angle. Its error is as large as the angle, so the frequency is made in
 * double and rounded. */
KERNEL(sinusoid)(GLOBAL const float *values, GLOBAL float *y, struct sinusoid_arguments a)
{
	enum { HALF = 128 };
	const int64_t row = INDEX / HALF;
	const int k = (int)(INDEX % HALF);
	if (row >= a.rows)
		return;
	const float frequency = (float)exp((double)(-9.2103405f * (float)k / (float)HALF)); /* −ln(10000) */
	const float angle = values[row] * frequency;
	y[row * 2 * HALF + k] = cos(angle);
	y[row * 2 * HALF + HALF + k] = sin(angle);
}

/* table [columns + rows, dim / 2]: a thread for each angle, which is a position's. */
KERNEL(positions)(GLOBAL float *table, struct positions_arguments a)
{
	const int64_t quarter = a.dim / 4, row = INDEX / quarter, k = INDEX % quarter;
	if (row >= a.columns + a.rows)
		return;
	const bool across = row < a.columns;
	const int64_t patches = across ? a.columns : a.rows, at = across ? row : row - a.columns;
	const float stretch = (float)((double)patches / (double)a.base);
	const float position = (float)at / stretch / (float)a.interpolation_scale;
	const double angle = (double)position / pow(10000.0, (double)k / (double)quarter);
	table[row * 2 * quarter + k] = (float)sin(angle);
	table[row * 2 * quarter + quarter + k] = (float)cos(angle);
}

/* What a token of an image that is `columns` patches wide has in column `column` of `dim`, from positions
 * [columns + *, dim / 2]. */
DEVICE float position_of(GLOBAL const float *positions, int64_t token, int64_t columns, int64_t dim,
			 int64_t column)
{
	const int64_t half_of = dim / 2;
	const int64_t place = column < half_of ? token % columns : columns + token / columns;
	return positions[place * half_of + column % half_of];
}

/* y [rows, dim] f32 += bias[dim] and the tokens' positions. */
KERNEL(finish_patches)(GLOBAL const float *bias, GLOBAL const float *positions, GLOBAL float *y,
		       struct patch_embed_arguments a)
{
	const int64_t row = INDEX / a.out, column = INDEX % a.out;
	if (row < a.rows)
		y[INDEX] = y[INDEX] + bias[column] +
			   position_of(positions, a.first + row, a.columns, a.out, column);
}

KERNEL(add_positions)(GLOBAL const float *positions, GLOBAL float *y, struct add_positions_arguments a)
{
	const int64_t row = INDEX / a.dim;
	if (row < a.rows)
		y[INDEX] += position_of(positions, a.first + row, a.columns, a.dim, INDEX % a.dim);
}

/* y f32 [count] = x·input_scale. */
KERNEL(scale_patches)(GLOBAL const float *x, GLOBAL float *y, struct patch_embed_arguments a)
{
	if (INDEX < a.rows * a.in)
		y[INDEX] = x[INDEX] * a.input_scale;
}
