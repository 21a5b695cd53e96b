/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/conditioning.h"

#include <math.h>

void smalti_sinusoid(float value, float *y)
{
	enum { HALF = SMALTI_SINUSOID_SIZE / 2 };
	const float minus_log_period = -9.2103405f; /* −ln(10000) */
	for (int k = 0; k < HALF; k++) {
		float angle = value * expf(minus_log_period * (float)k / (float)HALF);
		y[k] = cosf(angle);
		y[HALF + k] = sinf(angle);
	}
}

/* Computes enc(p) = [sin(p·ω_k)…, cos(p·ω_k)…], ω_k = 10000^(−k/quarter). */
static void encode_position(float position, int64_t quarter, float *y)
{
	for (int64_t k = 0; k < quarter; k++) {
		double angle = (double)position / pow(10000.0, (double)k / (double)quarter);
		y[k] = (float)sin(angle);
		y[quarter + k] = (float)cos(angle);
	}
}

/* Encodes an axis: its coordinates span that of the native size, for any number of patches. */
static void encode_axis(int64_t patches, int64_t dim, int64_t base, double interpolation_scale, float *table)
{
	const float stretch = (float)((double)patches / (double)base);
	for (int64_t i = 0; i < patches; i++)
		encode_position((float)i / stretch / (float)interpolation_scale, dim / 4,
				table + i * (dim / 2));
}

void smalti_positions(int64_t columns, int64_t rows, int64_t dim, int64_t base, double interpolation_scale,
		      float *table)
{
	encode_axis(columns, dim, base, interpolation_scale, table);
	encode_axis(rows, dim, base, interpolation_scale, table + columns * (dim / 2));
}

int64_t smalti_relative_bucket(int64_t r, int64_t buckets, int64_t max_distance)
{
	const int64_t half = buckets / 2, exact = half / 2;
	const int64_t side = r > 0 ? half : 0;
	const int64_t distance = r < 0 ? -r : r;
	if (distance < exact)
		return side + distance;
	/* f32 and this order of operations, as the reference */
	float octave = logf((float)distance / (float)exact) / logf((float)max_distance / (float)exact);
	int64_t offset = exact + (int64_t)(octave * (float)(half - exact));
	return side + (offset < half ? offset : half - 1);
}

void smalti_relative_bias(int64_t heads, int64_t buckets, int64_t max_distance, int64_t reach,
			  const float *table, float *bias)
{
	const int64_t length = 2 * reach - 1;
	for (int64_t i = 0; i < length; i++) {
		int64_t bucket = smalti_relative_bucket(i - (reach - 1), buckets, max_distance);
		for (int64_t head = 0; head < heads; head++)
			bias[head * length + i] = table[bucket * heads + head];
	}
}
