/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/resize.h"

#include <math.h>

enum { FRACTION_BITS = 22, CHANNELS = 3, BLOCK = 64 };

/* Filters keep the order of Pillow's operations, and so its rounding. */
static double bilinear(double t)
{
	t = fabs(t);
	return t < 1 ? 1 - t : 0;
}

static double bicubic(double t)
{
	const double a = -0.5;
	t = fabs(t);
	if (t < 1)
		return ((a + 2) * t - (a + 3)) * t * t + 1;
	return t < 2 ? (((t - 5) * t + 8) * t - 4) * a : 0;
}

static double sinc(double t)
{
	static const double pi = 3.14159265358979323846;
	return t == 0 ? 1 : sin(t * pi) / (t * pi);
}

static double lanczos(double t)
{
	return t >= -3 && t < 3 ? sinc(t) * sinc(t / 3) : 0;
}

static const struct {
	double (*at)(double t);
	double support; /* the filter is 0 beyond it */
} filters[] = {
    [SMALTI_FILTER_BILINEAR] = {bilinear, 1},
    [SMALTI_FILTER_BICUBIC] = {bicubic, 2},
    [SMALTI_FILTER_LANCZOS] = {lanczos, 3},
};

/* Returns the factor that widens the filter, so that no sample of a larger axis is skipped. */
static double widening(int64_t in, int64_t out)
{
	return in > out ? (double)in / (double)out : 1;
}

int64_t smalti_taps_max(enum smalti_filter filter, int64_t in, int64_t out)
{
	const int64_t max = 2 * (int64_t)ceil(filters[filter].support * widening(in, out)) + 1;
	return max < in ? max : in;
}

static int32_t to_fixed(double weight)
{
	const double scaled = weight * (1 << FRACTION_BITS);
	return (int32_t)(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

void smalti_taps_make(enum smalti_filter filter, int64_t in, int64_t out, int64_t at,
		      struct smalti_taps *taps)
{
	const double center = ((double)at + 0.5) * ((double)in / (double)out);
	const double support = filters[filter].support * widening(in, out);
	const double narrowing = 1 / widening(in, out);
	const int64_t first = (int64_t)(center - support + 0.5), end = (int64_t)(center + support + 0.5);
	taps->first = first > 0 ? first : 0;
	taps->count = (end < in ? end : in) - taps->first;
	double sum = 0;
	for (int64_t i = 0; i < taps->count; i++)
		sum += filters[filter].at(((double)(i + taps->first) - center + 0.5) * narrowing);
	for (int64_t i = 0; i < taps->count; i++) {
		double weight = filters[filter].at(((double)(i + taps->first) - center + 0.5) * narrowing);
		taps->weights[i] = to_fixed(weight / sum);
	}
}

static uint8_t to_byte(int32_t sum)
{
	const int32_t value = sum >> FRACTION_BITS;
	return (uint8_t)(value < 0 ? 0 : value > 255 ? 255 : value);
}

/* Sums stay within 32 bits: weights below 2 in sum, times 255, plus this. */
static const int32_t half = 1 << (FRACTION_BITS - 1);

void smalti_resize_along(int64_t width, const struct smalti_taps *taps, const uint8_t *x, uint8_t *y)
{
	for (int64_t i = 0; i < width; i++, y += CHANNELS) {
		const uint8_t *from = x + taps[i].first * CHANNELS;
		int32_t red = half, green = half, blue = half;
		for (int64_t k = 0; k < taps[i].count; k++, from += CHANNELS) {
			const int32_t weight = taps[i].weights[k];
			red += weight * from[0];
			green += weight * from[1];
			blue += weight * from[2];
		}
		y[0] = to_byte(red);
		y[1] = to_byte(green);
		y[2] = to_byte(blue);
	}
}

/* Always inlined, so that whole blocks have a constant count. */
static inline __attribute__((always_inline)) void
across(int64_t offset, int count, const struct smalti_taps *taps, const uint8_t *const *rows, uint8_t *y)
{
	int32_t sums[BLOCK];
	for (int i = 0; i < count; i++)
		sums[i] = half;
	for (int64_t k = 0; k < taps->count; k++)
		for (int i = 0; i < count; i++)
			sums[i] += taps->weights[k] * rows[k][offset + i];
	for (int i = 0; i < count; i++)
		y[offset + i] = to_byte(sums[i]);
}

void smalti_resize_across(int64_t width, const struct smalti_taps *taps, const uint8_t *const *rows,
			  uint8_t *y)
{
	const int64_t values = width * CHANNELS, whole = values / BLOCK * BLOCK;
	for (int64_t offset = 0; offset < whole; offset += BLOCK)
		across(offset, BLOCK, taps, rows, y);
	across(whole, (int)(values - whole), taps, rows, y);
}
