/* SPDX-License-Identifier: Apache-2.0
 *
 * Planes, patches and pixels (kernels/layout.h): a thread for each element. */

/* Where element `i` of tokens [rows, channels·patch²] lies in planes [channels, height, width]; the tokens
 * begin at `first` of those of patch columns left … left + columns − 1. */
DEVICE int64_t pixel_of(int64_t channels, int64_t height, int64_t width, int64_t patch, int64_t left,
			int64_t columns, int64_t first, int64_t i)
{
	const int64_t q = i % patch, p = i / patch % patch, channel = i / (patch * patch) % channels;
	const int64_t token = first + i / (patch * patch * channels);
	const int64_t y = token / columns * patch + p, x = (left + token % columns) * patch + q;
	return (channel * height + y) * width + x;
}

/* The same of an element of tokens that may have their channels last. */
DEVICE int64_t pixel_at(struct patchify_arguments a, int64_t i)
{
	const int64_t area = a.patch * a.patch, column = i % (area * a.channels);
	if (a.channels_last)
		i += column % a.channels * area + column / a.channels - column;
	return pixel_of(a.channels, a.height, a.width, a.patch, a.left, a.columns, a.first, i);
}

KERNEL(patchify)(GLOBAL const float *planes, GLOBAL float *tokens, struct patchify_arguments a)
{
	if (INDEX < a.rows * a.channels * a.patch * a.patch)
		tokens[INDEX] = planes[pixel_at(a, INDEX)] * a.scale;
}

KERNEL(unpatchify)(GLOBAL const float *tokens, GLOBAL float *planes, struct patchify_arguments a)
{
	if (INDEX < a.rows * a.channels * a.patch * a.patch)
		planes[pixel_at(a, INDEX)] = tokens[INDEX] * a.scale;
}

/* y [rows, width, channels] from rows first_row … of planes [channels, height, width]. */
KERNEL(latent_rows)(GLOBAL const float *planes, GLOBAL float *y, struct latent_rows_arguments a)
{
	const int64_t channel = INDEX % a.channels, pixel = INDEX / a.channels;
	if (pixel < a.rows * a.width)
		y[INDEX] = planes[(channel * a.height + a.first_row) * a.width + pixel] * a.scale;
}

/* Rows first_row … of planes [2·channels, height, width] from moments [rows, width, 2·channels]. NaN stays
 * NaN. */
KERNEL(posterior_rows)(GLOBAL const float *moments, GLOBAL float *planes, struct posterior_rows_arguments a)
{
	const int64_t pixels = a.rows * a.width, channel = INDEX / pixels, pixel = INDEX % pixels;
	if (channel >= 2 * a.channels)
		return;
	float value = moments[pixel * 2 * a.channels + channel];
	if (channel >= a.channels)
		value = exp(0.5f * (value < -30.f ? -30.f : value > 20.f ? 20.f : value));
	planes[(channel * a.height + a.first_row) * a.width + pixel] = value;
}
