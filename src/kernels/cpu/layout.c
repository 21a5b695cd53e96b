/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/layout.h"

#include <math.h>
#include <string.h>

/* Returns where the pixel (channel, row p, column q) of a token lies in the planes. */
static int64_t pixel_of(const struct smalti_patches *s, int64_t token, int64_t channel, int64_t p, int64_t q)
{
	const int64_t y = token / s->columns * s->patch + p;
	const int64_t x = (s->left + token % s->columns) * s->patch + q;
	return (channel * s->height + y) * s->width + x;
}

/* Returns the column of a token that holds the pixel. */
static int64_t column_of(const struct smalti_patches *s, int64_t channel, int64_t p, int64_t q)
{
	const int64_t pixel = p * s->patch + q;
	return s->channels_last ? pixel * s->channels + channel : channel * s->patch * s->patch + pixel;
}

void smalti_patchify(const struct smalti_patches *s, float scale, const float *planes, float *tokens)
{
	const int64_t columns = s->channels * s->patch * s->patch;
	for (int64_t n = 0; n < s->rows; n++, tokens += columns)
		for (int64_t channel = 0; channel < s->channels; channel++)
			for (int64_t p = 0; p < s->patch; p++)
				for (int64_t q = 0; q < s->patch; q++)
					tokens[column_of(s, channel, p, q)] =
					    planes[pixel_of(s, s->first + n, channel, p, q)] * scale;
}

void smalti_unpatchify(const struct smalti_patches *s, float scale, const float *tokens, float *planes)
{
	const int64_t columns = s->channels * s->patch * s->patch;
	for (int64_t n = 0; n < s->rows; n++, tokens += columns)
		for (int64_t channel = 0; channel < s->channels; channel++)
			for (int64_t p = 0; p < s->patch; p++)
				for (int64_t q = 0; q < s->patch; q++)
					planes[pixel_of(s, s->first + n, channel, p, q)] =
					    tokens[column_of(s, channel, p, q)] * scale;
}

void smalti_reorder_output(const struct smalti_patches *s, int64_t out_channels, const float *v, float *y)
{
	const int64_t area = s->patch * s->patch;
	for (int64_t n = 0; n < s->rows; n++, v += area * out_channels)
		for (int64_t channel = 0; channel < s->channels; channel++)
			for (int64_t pixel = 0; pixel < area; pixel++)
				*y++ = v[pixel * out_channels + channel];
}

void smalti_planes_to_pixels(int64_t channels, int64_t height, int64_t width, int64_t first_row, int64_t rows,
			     float scale, const float *planes, float *y)
{
	for (int64_t row = first_row; row < first_row + rows; row++)
		for (int64_t column = 0; column < width; column++)
			for (int64_t channel = 0; channel < channels; channel++)
				*y++ = planes[(channel * height + row) * width + column] * scale;
}

/* Returns the deviation; NaN stays NaN. */
static float deviation(float log_variance)
{
	return expf(0.5f * (log_variance < -30.f ? -30.f : log_variance > 20.f ? 20.f : log_variance));
}

void smalti_posterior_to_planes(int64_t channels, int64_t height, int64_t width, int64_t first_row,
				int64_t rows, const float *x, float *planes)
{
	for (int64_t row = first_row; row < first_row + rows; row++)
		for (int64_t column = 0; column < width; column++)
			for (int64_t channel = 0; channel < 2 * channels; channel++) {
				float value = *x++;
				if (channel >= channels)
					value = deviation(value);
				planes[(channel * height + row) * width + column] = value;
			}
}

void smalti_from_u8(int64_t count, const unsigned char *x, float *y)
{
	for (int64_t i = 0; i < count; i++)
		y[i] = (float)x[i] / 127.5f - 1.f;
}

void smalti_upsample_row(int64_t width, int64_t channels, enum smalti_dtype dtype, const void *x, void *y)
{
	size_t bytes = (size_t)(channels * smalti_dtype_bytes(dtype));
	const char *from = x;
	char *to = y;
	for (int64_t pixel = 0; pixel < width; pixel++, from += bytes, to += 2 * bytes) {
		memcpy(to, from, bytes);
		memcpy(to + bytes, from, bytes);
	}
}
