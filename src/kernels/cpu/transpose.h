/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Rows of weights, one for each output, with the outputs side by side; and the extent of a tile of sums that
 * stays in registers. */
#include "kernels/cpu/vector.h"
#include "kernels/cpu/workspace.h"

enum {
	VECTORS = 2, /* of outputs in a tile */
	OUTPUTS = VECTORS * LANES,
	LINE_BYTES = 4 * LINE /* of an output's weights that are widened at a time */
};

/* Rows of a tile at most; EACH_ROWS(form) has all numbers of them. */
#if VEC_BYTES == 64
enum { ROWS = 14 };
#define EACH_ROWS(form)                                                                                      \
	form(1) form(2) form(3) form(4) form(5) form(6) form(7) form(8) form(9) form(10) form(11) form(12)   \
	    form(13) form(14)
#else
enum { ROWS = 6 };
#define EACH_ROWS(form) form(1) form(2) form(3) form(4) form(5) form(6)
#endif

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

/* Transposes blocks of `count` × `count` elements in `count` vectors, by rounds that interleave the first
 * half of the vectors with the second: the lower and the upper halves of their places. */
#define TRANSPOSE(rows, count, lower, upper)                                                                 \
	do {                                                                                                 \
		__typeof__((rows)[0]) turned[count];                                                         \
		UNROLL                                                                                       \
		for (int round = 0; round < __builtin_ctz(count); round++) {                                 \
			UNROLL                                                                               \
			for (int i = 0; i < (count) / 2; i++) {                                              \
				__typeof__((rows)[0]) a = (rows)[i], b = (rows)[i + (count) / 2];            \
				turned[2 * i] = __builtin_shufflevector(a, b, lower);                        \
				turned[2 * i + 1] = __builtin_shufflevector(a, b, upper);                    \
			}                                                                                    \
			memcpy((rows), turned, sizeof(turned));                                              \
		}                                                                                            \
	} while (0)

typedef uint16_t halves __attribute__((vector_size(VEC_BYTES)));
typedef float place __attribute__((vector_size(16)));

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

/* Transposes eight elements of 16 bits of OUTPUTS rows, which lie `stride` bytes apart. */
INLINE void transpose_halves(const char *from, int64_t stride, halves rows[8])
{
	UNROLL
	for (int i = 0; i < 8; i++)
		rows[i] = (halves)gather_places(from + i * stride, 8 * stride);
	TRANSPOSE(rows, 8, HALVES_FROM(0), HALVES_FROM(4));
}
