/* SPDX-License-Identifier: Apache-2.0 */
#include "base/dtype.h"

float smalti_f16_to_f32(uint16_t value)
{
	uint32_t sign = (uint32_t)(value & 0x8000u) << 16;
	uint32_t exponent = (value >> 10) & 0x1f;
	uint32_t mantissa = value & 0x3ff;
	uint32_t bits;
	if (exponent == 0x1f) {
		bits = sign | 0x7f800000u | (mantissa << 13);
	} else if (exponent) {
		bits = sign | ((exponent + 112) << 23) | (mantissa << 13);
	} else {
		float tiny = (float)mantissa * 0x1p-24f; /* subnormal: exact in f32 */
		memcpy(&bits, &tiny, sizeof(bits));
		bits |= sign;
	}
	float result;
	memcpy(&result, &bits, sizeof(result));
	return result;
}

uint16_t smalti_f32_to_f16(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	uint16_t sign = (uint16_t)((bits >> 16) & 0x8000u);
	bits &= 0x7fffffffu;
	if (bits > 0x7f800000u)
		return sign | 0x7e00;
	if (bits >= 0x47800000u) /* 65536 and more; the carry below handles what rounds up to it */
		return sign | 0x7c00;
	if (bits < 0x38800000u) { /* below 2^-14: let the FPU round to a multiple of 2^-24 */
		float magic, magnitude;
		const uint32_t half = 0x3f000000u; /* 0.5, whose last bit is 2^-24 */
		memcpy(&magnitude, &bits, sizeof(bits));
		memcpy(&magic, &half, sizeof(half));
		magnitude += magic;
		memcpy(&bits, &magnitude, sizeof(bits));
		return (uint16_t)(sign | (bits - half));
	}
	bits += 0xfffu + ((bits >> 13) & 1);
	return (uint16_t)(sign | ((bits - 0x38000000u) >> 13));
}

static const struct {
	const char *name;
	float (*widen)(uint16_t value); /* for types of 16 bits */
	uint16_t (*narrow)(float value);
} dtypes[] = {
    [SMALTI_F32] = {"f32", NULL, NULL},
    [SMALTI_F16] = {"f16", smalti_f16_to_f32, smalti_f32_to_f16},
    [SMALTI_BF16] = {"bf16", smalti_bf16_to_f32, smalti_f32_to_bf16},
    [SMALTI_I8] = {"int8", NULL, NULL},
    [SMALTI_E4M3] = {"e4m3", NULL, NULL},
    [SMALTI_E5M2] = {"e5m2", NULL, NULL},
};

const char *smalti_dtype_name(enum smalti_dtype dtype)
{
	return dtypes[dtype].name;
}

float smalti_round(enum smalti_dtype dtype, float value)
{
	return dtype == SMALTI_F32 ? value : dtypes[dtype].widen(dtypes[dtype].narrow(value));
}

void smalti_widen(enum smalti_dtype dtype, const void *from, int64_t count, float *to)
{
	if (dtype == SMALTI_F32) {
		memcpy(to, from, (size_t)count * sizeof(float));
		return;
	}
	const unsigned char *bytes = from;
	for (int64_t i = 0; i < count; i++) {
		uint16_t half;
		memcpy(&half, bytes + 2 * i, sizeof(half));
		to[i] = dtypes[dtype].widen(half);
	}
}

void smalti_narrow(enum smalti_dtype dtype, const float *from, int64_t count, void *to)
{
	if (dtype == SMALTI_F32) {
		memcpy(to, from, (size_t)count * sizeof(float));
		return;
	}
	unsigned char *bytes = to;
	for (int64_t i = 0; i < count; i++) {
		const uint16_t half = dtypes[dtype].narrow(from[i]);
		memcpy(bytes + 2 * i, &half, sizeof(half));
	}
}
