/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Weights as the file has them, rows of outputs, to f32 with the outputs side by side: raw.c multiplies by
 * them. */
#include "kernels/cpu/raw_parts.h"
#include "kernels/cpu/transpose.h"

typedef int8_t codes16 __attribute__((vector_size(16)));
typedef uint16_t halves16 __attribute__((vector_size(32)));

/* Transposes four inputs of all outputs, whose rows lie a LINE apart, to [input, OUTPUTS]. */
INLINE void turn_floats(const enum smalti_dtype compute, const char *staged, float *to)
{
	UNROLL
	for (int v = 0; v < VECTORS; v++) {
		vec rows[4];
		UNROLL
		for (int i = 0; i < 4; i++)
			rows[i] = gather_places(staged + (v * LANES + i) * LINE_BYTES, 4 * LINE_BYTES);
		TRANSPOSE(rows, 4, FLOATS_FROM(0), FLOATS_FROM(2));
		UNROLL
		for (int i = 0; i < 4; i++)
			vec_store(to + i * OUTPUTS + v * LANES, vec_round(compute, rows[i]));
	}
}

/* Transposes eight inputs of 16 bits likewise. */
INLINE void turn_halves(enum smalti_dtype dtype, const enum smalti_dtype compute, const char *staged,
			float *to)
{
	halves rows[8];
	transpose_halves(staged, LINE_BYTES, rows);
	UNROLL
	for (int i = 0; i < 8; i++) {
		UNROLL
		for (int v = 0; v < VECTORS; v++) {
			vec value = vec_read(dtype, &rows[i], v * LANES, LANES);
			vec_store(to + i * OUTPUTS + v * LANES, vec_round(compute, value));
		}
	}
}

/* Makes a vector of LANES codes of sixteen. */
INLINE vec vec_of_codes(enum smalti_dtype dtype, const codes16 *codes, int64_t first)
{
	const int8_t *from = (const int8_t *)codes + first;
	if (dtype != SMALTI_I8) {
		const halves16 as_f16 = FP8_AS_F16(dtype, __builtin_convertvector(*codes, halves16));
		return vec_read(SMALTI_F16, &as_f16, first, LANES) * vec_set1(FP8_FACTOR(dtype));
	}
#if VEC_BYTES == 64
	return (vec)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)from)));
#elif VEC_BYTES == 32
	return (vec)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64((const __m128i *)from)));
#else
	vec value;
	for (int i = 0; i < LANES; i++)
		value[i] = (float)from[i];
	return value;
#endif
}

/* Transposes sixteen inputs of 8 bits likewise, which no dtype of products rounds; 16 outputs at a time. */
INLINE void turn_codes(enum smalti_dtype dtype, const char *staged, float *to)
{
	for (int first = 0; first < OUTPUTS; first += 16) {
		codes16 rows[16] = {0};
		UNROLL
		for (int i = 0; i < smalti_min(16, OUTPUTS - first); i++)
			memcpy(&rows[i], staged + (first + i) * LINE_BYTES, sizeof(rows[i]));
		TRANSPOSE(rows, 16, MIX16(0, 16), MIX16(8, 16));
		for (int i = 0; i < 16; i++)
			for (int o = 0; o < 16 && first + o < OUTPUTS; o += LANES)
				vec_store(to + i * OUTPUTS + first + o, vec_of_codes(dtype, &rows[i], o));
	}
}

/* Widens weights of `outputs` outputs to [depth, OUTPUTS], rounded. */
INLINE void widen(enum smalti_dtype dtype, const enum smalti_dtype compute, const struct panel *panel,
		  int64_t outputs, int64_t depth, float *to)
{
	char staged[OUTPUTS * LINE_BYTES] __attribute__((aligned(LINE_BYTES)));
	const int64_t size = smalti_dtype_bytes(dtype);
	for (int64_t first = 0; first < depth * size; first += LINE_BYTES) {
		const int64_t bytes = smalti_min(depth * size - first, LINE_BYTES);
		if (bytes == LINE_BYTES)
			stage(panel->from + first, panel->stride, outputs, LINE_BYTES, staged);
		else
			stage(panel->from + first, panel->stride, outputs, bytes, staged);
		for (int64_t at = 0; at < bytes; at += 16) {
			float *turned = to + (first + at) / size * OUTPUTS;
			if (dtype == SMALTI_F32)
				turn_floats(compute, staged + at, turned);
			else if (smalti_is_rows8(dtype))
				turn_codes(dtype, staged + at, turned);
			else
				turn_halves(dtype, compute, staged + at, turned);
		}
	}
}

INLINE void widen_for(enum smalti_dtype dtype, enum smalti_dtype compute, const struct panel *panel,
		      int64_t outputs, int64_t depth, float *to)
{
	if (compute == SMALTI_F32 || compute == dtype || smalti_is_rows8(dtype))
		widen(dtype, SMALTI_F32, panel, outputs, depth, to);
	else if (compute == SMALTI_F16)
		widen(dtype, SMALTI_F16, panel, outputs, depth, to);
	else
		widen(dtype, SMALTI_BF16, panel, outputs, depth, to);
}

static void widen_panel(const struct smalti_matmul *m, enum smalti_dtype dtype, const struct panel *panel,
			int64_t outputs, int64_t depth, float *to)
{
	FOR_WEIGHTS(dtype, widen_for, m->compute, panel, outputs, depth, to);
}
