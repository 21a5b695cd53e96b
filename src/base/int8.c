/* SPDX-License-Identifier: Apache-2.0 */
#include "base/int8.h"

#include <math.h>

enum { LARGEST = 127 };

float smalti_int8_scale(const float *values, int64_t count)
{
	float largest = 0, check = 0;
	for (int64_t i = 0; i < count; i++) {
		const float magnitude = fabsf(values[i]);
		largest = magnitude > largest ? magnitude : largest;
		check += values[i] * 0; /* NaN as soon as one is not finite */
	}
	return largest / LARGEST + check;
}

void smalti_int8_round(const float *values, int64_t count, float scale, int8_t *to)
{
	for (int64_t i = 0; i < count; i++) {
		const float rounded = scale > 0 ? rintf(values[i] / scale) : 0;
		to[i] = (int8_t)(rounded > LARGEST ? LARGEST : rounded < -LARGEST ? -LARGEST : rounded);
	}
}
