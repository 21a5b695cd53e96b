/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

/* Floating-point numbers of 8 bits, as in "FP8 Formats for Deep Learning" (Micikevicius et al. 2022). A code
 * is a sign, an exponent and a mantissa, from the highest bit on. */
struct smalti_fp8 {
	int mantissa_bits;
	int bias;            /* of the exponent */
	uint8_t largest;     /* code of the largest finite number */
	uint8_t not_finite;  /* first code that is none; codes from it on are infinity and NaN */
	float largest_value; /* what `largest` codes */
};

extern const struct smalti_fp8 smalti_e4m3; /* e4m3fn: up to 448, no infinity */
extern const struct smalti_fp8 smalti_e5m2; /* up to 57344; the upper byte of an f16 */

/* Converts `count` codes, exactly. */
void smalti_fp8_widen(const struct smalti_fp8 *format, const uint8_t *codes, int64_t count, float *to);
/* Tells whether all codes are finite numbers. */
bool smalti_fp8_are_finite(const struct smalti_fp8 *format, const uint8_t *codes, int64_t count);
/* Rounds to nearest, ties to the even code; saturates to the largest finite number; NaN stays NaN. */
uint8_t smalti_fp8_narrow(const struct smalti_fp8 *format, float value);
