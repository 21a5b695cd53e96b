/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Weights as the file has them, rows of outputs, to f32 with the outputs side by side: raw.c multiplies by
 * them. */
#include "kernels/cpu/raw_parts.h"

enum {
	VECTORS = 2, /* of outputs in a tile */
	OUTPUTS = VECTORS * LANES,
	LINE_BYTES = 4 * LINE /* of an output's weights that are widened at a time */
};

/* Interleaves the elements first … of one vector with those of another, in each of `places` of 16 bytes. */
#define MIX4(first, count)  (first), (first) + (count), (first) + 1, (first) + 1 + (count)
#define MIX8(first, count)  MIX4(first, count), MIX4((first) + 2, count)
#define MIX16(first, count) MIX8(first, count), MIX8((first) + 4, count)
#if VEC_BYTES == 64
#define EACH_PLACE(mix, first, each, count)                                                                  \
	mix(first, count), mix((first) + (each), count), mix((first) + 2 * (each), count),                   \
	    mix((first) + 3 * (each), count)
#elif VEC_BYTES == 32
#define EACH_PLACE(mix, first, each, count) mix(first, count), mix((first) + (each), count)
#else
#define EACH_PLACE(mix, first, each, count) mix(first, count)
#endif
#define FLOATS_FROM(first) EACH_PLACE(MIX4, first, 4, LANES)
#define HALVES_FROM(first) EACH_PLACE(MIX8, first, 8, 2 * LANES)

typedef uint16_t halves __attribute__((vector_size(VEC_BYTES)));
typedef float place __attribute__((vector_size(16)));
typedef int8_t integers __attribute__((vector_size(16)));

INLINE place place_load(const char *from)
{
	place value;
	memcpy(&value, from, sizeof(value));
	return value;
}

/* Reads 16 bytes of each of LANES / 4 rows, `stride` apart. */
INLINE vec gather_places(const char *from, int64_t stride)
{
#if VEC_BYTES == 64
	__m512 value = _mm512_castps128_ps512((__m128)place_load(from));
	value = _mm512_insertf32x4(value, (__m128)place_load(from + stride), 1);
	value = _mm512_insertf32x4(value, (__m128)place_load(from + 2 * stride), 2);
	return (vec)_mm512_insertf32x4(value, (__m128)place_load(from + 3 * stride), 3);
#elif VEC_BYTES == 32
	return __builtin_shufflevector(place_load(from), place_load(from + stride), 0, 1, 2, 3, 4, 5, 6, 7);
#else
	(void)stride;
	return place_load(from);
#endif
}

/* Transposes four inputs of all outputs, whose rows lie a LINE apart, to [input, OUTPUTS]. */
INLINE void turn_floats(const enum smalti_dtype compute, const char *staged, float *to)
{
	UNROLL
	for (int v = 0; v < VECTORS; v++) {
		vec rows[4], turned[4];
		UNROLL
		for (int i = 0; i < 4; i++)
			rows[i] = gather_places(staged + (v * LANES + i) * LINE_BYTES, 4 * LINE_BYTES);
		UNROLL
		for (int round = 0; round < 2; round++) {
			UNROLL
			for (int i = 0; i < 2; i++) {
				vec a = rows[i], b = rows[i + 2];
				turned[2 * i] = __builtin_shufflevector(a, b, FLOATS_FROM(0));
				turned[2 * i + 1] = __builtin_shufflevector(a, b, FLOATS_FROM(2));
			}
			memcpy(rows, turned, sizeof(rows));
		}
		UNROLL
		for (int i = 0; i < 4; i++)
			vec_store(to + i * OUTPUTS + v * LANES, vec_round(compute, rows[i]));
	}
}

/* Transposes eight inputs of 16 bits likewise. */
INLINE void turn_halves(enum smalti_dtype dtype, const enum smalti_dtype compute, const char *staged,
			float *to)
{
	halves rows[8], turned[8];
	UNROLL
	for (int i = 0; i < 8; i++)
		rows[i] = (halves)gather_places(staged + i * LINE_BYTES, 8 * LINE_BYTES);
	UNROLL
	for (int round = 0; round < 3; round++) {
		UNROLL
		for (int i = 0; i < 4; i++) {
			halves a = rows[i], b = rows[i + 4];
			turned[2 * i] = __builtin_shufflevector(a, b, HALVES_FROM(0));
			turned[2 * i + 1] = __builtin_shufflevector(a, b, HALVES_FROM(4));
		}
		memcpy(rows, turned, sizeof(rows));
	}
	UNROLL
	for (int i = 0; i < 8; i++) {
		UNROLL
		for (int v = 0; v < VECTORS; v++) {
			vec value = vec_read(dtype, &rows[i], v * LANES, LANES);
			vec_store(to + i * OUTPUTS + v * LANES, vec_round(compute, value));
		}
	}
}

/* Makes a vector of LANES integers. */
INLINE vec vec_of_integers(const int8_t *from)
{
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

/* Transposes sixteen inputs of integers likewise, which no dtype of products rounds; 16 outputs at a time. */
INLINE void turn_integers(const char *staged, float *to)
{
	for (int first = 0; first < OUTPUTS; first += 16) {
		integers rows[16] = {0}, turned[16];
		UNROLL
		for (int i = 0; i < smalti_min(16, OUTPUTS - first); i++)
			memcpy(&rows[i], staged + (first + i) * LINE_BYTES, sizeof(rows[i]));
		UNROLL
		for (int round = 0; round < 4; round++) {
			UNROLL
			for (int i = 0; i < 8; i++) {
				integers a = rows[i], b = rows[i + 8];
				turned[2 * i] = __builtin_shufflevector(a, b, MIX16(0, 16));
				turned[2 * i + 1] = __builtin_shufflevector(a, b, MIX16(8, 16));
			}
			memcpy(rows, turned, sizeof(rows));
		}
		for (int i = 0; i < 16; i++)
			for (int o = 0; o < 16 && first + o < OUTPUTS; o += LANES)
				vec_store(to + i * OUTPUTS + first + o,
					  vec_of_integers((const int8_t *)&rows[i] + o));
	}
}

/* Copies a cache line of each output's inputs; repeats the last output up to OUTPUTS; zeros from `bytes` on.
 */
INLINE void stage(const char *from, int64_t stride, int64_t outputs, int64_t bytes, char *staged)
{
	for (int64_t o = 0; o < OUTPUTS; o++, staged += LINE_BYTES) {
		if (bytes < LINE_BYTES)
			memset(staged, 0, LINE_BYTES);
		memcpy(staged, from, (size_t)bytes);
		from += o < outputs - 1 ? stride : 0;
	}
}

/* Widens weights of `outputs` outputs to [depth, OUTPUTS], rounded. */
INLINE void widen(enum smalti_dtype dtype, const enum smalti_dtype compute, const struct panel *panel,
		  int64_t outputs, int64_t depth, float *to)
{
	char staged[OUTPUTS * LINE_BYTES] __attribute__((aligned(LINE_BYTES)));
	const int64_t size = dtype == SMALTI_F32 ? 4 : dtype == SMALTI_I8 ? 1 : 2;
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
			else if (dtype == SMALTI_I8)
				turn_integers(staged + at, turned);
			else
				turn_halves(dtype, compute, staged + at, turned);
		}
	}
}

INLINE void widen_for(enum smalti_dtype dtype, enum smalti_dtype compute, const struct panel *panel,
		      int64_t outputs, int64_t depth, float *to)
{
	if (compute == SMALTI_F32 || compute == dtype)
		widen(dtype, SMALTI_F32, panel, outputs, depth, to);
	else if (compute == SMALTI_F16)
		widen(dtype, SMALTI_F16, panel, outputs, depth, to);
	else
		widen(dtype, SMALTI_BF16, panel, outputs, depth, to);
}

static void widen_panel(const struct smalti_matmul *m, enum smalti_dtype dtype, const struct panel *panel,
			int64_t outputs, int64_t depth, float *to)
{
	if (dtype == SMALTI_I8)
		widen(SMALTI_I8, SMALTI_F32, panel, outputs, depth, to);
	else
		FOR_DTYPE(dtype, widen_for, m->compute, panel, outputs, depth, to);
}
