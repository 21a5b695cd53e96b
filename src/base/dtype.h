/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype_enum.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Tells whether a dtype is that of 8-bit rows (base/rows8.h). */
static inline bool smalti_is_rows8(enum smalti_dtype dtype)
{
	return dtype >= SMALTI_I8;
}

static inline int64_t smalti_dtype_bytes(enum smalti_dtype dtype)
{
	return dtype == SMALTI_F32 ? 4 : smalti_is_rows8(dtype) ? 1 : 2;
}

const char *smalti_dtype_name(enum smalti_dtype dtype); /* "f32", "f16", "bf16", "int8", "e4m3", "e5m2" */

static inline float smalti_bf16_to_f32(uint16_t value)
{
	uint32_t bits = (uint32_t)value << 16;
	float result;
	memcpy(&result, &bits, sizeof(result));
	return result;
}

/* Rounds to nearest even; NaN stays NaN. */
static inline uint16_t smalti_f32_to_bf16(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	if ((bits & 0x7fffffffu) > 0x7f800000u)
		return (uint16_t)((bits >> 16) | 0x40);
	return (uint16_t)((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
}

float smalti_f16_to_f32(uint16_t value);
uint16_t smalti_f32_to_f16(float value); /* rounds to nearest even, overflow to infinity */

/* These are of floating point alone. */

/* Rounds a value to `dtype`. */
float smalti_round(enum smalti_dtype dtype, float value);

/* Converts `count` elements of `dtype` at `from` (any alignment) to f32, exactly. */
void smalti_widen(enum smalti_dtype dtype, const void *from, int64_t count, float *to);
/* Converts f32 to `dtype`, rounded to nearest even. */
void smalti_narrow(enum smalti_dtype dtype, const float *from, int64_t count, void *to);
