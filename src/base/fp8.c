/* SPDX-License-Identifier: Apache-2.0 */
#include "base/fp8.h"

#include <math.h>
#include <string.h>

enum { MANTISSA = 23, BIAS = 127, SIGN = 0x80, NAN_CODE = 0x7f }; /* the first two of f32 */

const struct smalti_fp8 smalti_e4m3 = {3, 7, 0x7e, 0x7f, 448};
const struct smalti_fp8 smalti_e5m2 = {2, 15, 0x7b, 0x7c, 57344};

static float from_bits(uint32_t bits)
{
	float value;
	memcpy(&value, &bits, sizeof(value));
	return value;
}

/* Returns infinity for e5m2's code of it, else NaN, with the code's sign. */
static float not_finite(const struct smalti_fp8 *format, uint8_t code)
{
	const bool infinite =
	    format->not_finite != NAN_CODE && (code & ~(unsigned)SIGN) == format->not_finite;
	return copysignf(infinite ? INFINITY : NAN, code & SIGN ? -1.f : 1.f);
}

/* Takes the bits as those of an f32 of the same exponent, which is 2^(127 − bias) too small. */
void smalti_fp8_widen(const struct smalti_fp8 *format, const uint8_t *codes, int64_t count, float *to)
{
	const float factor = ldexpf(1, BIAS - format->bias);
	const int shift = MANTISSA - format->mantissa_bits;
	for (int64_t i = 0; i < count; i++) {
		const uint32_t magnitude = codes[i] & ~(uint32_t)SIGN, sign = codes[i] & (uint32_t)SIGN;
		to[i] = magnitude >= format->not_finite ? not_finite(format, codes[i])
							: from_bits(sign << 24 | magnitude << shift) * factor;
	}
}

bool smalti_fp8_are_finite(const struct smalti_fp8 *format, const uint8_t *codes, int64_t count)
{
	bool finite = true;
	for (int64_t i = 0; i < count; i++)
		finite &= (codes[i] & ~(unsigned)SIGN) < format->not_finite;
	return finite;
}

uint8_t smalti_fp8_narrow(const struct smalti_fp8 *format, float value)
{
	const int shift = MANTISSA - format->mantissa_bits;
	const uint8_t sign = signbit(value) ? SIGN : 0;
	const float magnitude = fabsf(value);
	if (isnan(value))
		return sign | NAN_CODE;
	if (magnitude >= format->largest_value)
		return sign | format->largest;
	if (magnitude < ldexpf(1, 1 - format->bias)) /* multiples of the smallest number */
		return sign | (uint8_t)rintf(ldexpf(magnitude, format->bias - 1 + format->mantissa_bits));
	uint32_t bits;
	memcpy(&bits, &magnitude, sizeof(bits));
	bits += (1u << (shift - 1)) - 1 + (bits >> shift & 1);
	const uint32_t code = (bits >> shift) - ((uint32_t)(BIAS - format->bias) << format->mantissa_bits);
	return sign | (uint8_t)(code < format->largest ? code : format->largest);
}
