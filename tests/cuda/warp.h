/* SPDX-License-Identifier: Apache-2.0
 *
 * The GPU's part of src/kernels/device/warp.h, for threads that are fibers: they leave in rooms what others
 * take. */
#pragma once

#include "cuda/fibers.h"

enum { ROOMS = STANDIN_MOST_THREADS };

/* Widens the elements of words, two in each. */
static inline void widen_words(enum smalti_dtype dtype, const uint *words, int count, float *to)
{
	for (int i = 0; i < 2 * count; i++) {
		const uint16_t one = (uint16_t)(words[i / 2] >> 16 * (i % 2));
		to[i] = dtype == SMALTI_BF16 ? FLOAT_OF_BITS((uint)one << 16) : smalti_f16_to_f32(one);
	}
}

static inline void leave_row(LOCAL const ushort **rooms, LOCAL const ushort *row)
{
	rooms[THREAD] = row;
	standin_barrier();
}

static inline void load_matrices(LOCAL const ushort *row, uint to[4])
{
	static const ushort *rooms[ROOMS];
	leave_row(rooms, row);
	for (int m = 0; m < 4; m++)
		memcpy(&to[m], rooms[THREAD / 32 * 32 + 8 * m + LANE / 4] + 2 * (LANE % 4), sizeof(to[m]));
	standin_barrier();
}

static inline void load_turned(LOCAL const ushort *row, uint to[4])
{
	static const ushort *rooms[ROOMS];
	leave_row(rooms, row);
	for (int m = 0; m < 4; m++) {
		const ushort *const *rows = &rooms[THREAD / 32 * 32 + 8 * m + 2 * (LANE % 4)];
		to[m] = rows[0][LANE / 4] | (uint)rows[1][LANE / 4] << 16;
	}
	standin_barrier();
}

static inline void multiply_matrices(enum smalti_dtype dtype, float sums[4], const uint a[4], const uint b[2])
{
	static float a_rooms[ROOMS][4][2], b_rooms[ROOMS][2][2];
	const uint thread = THREAD, lane = thread % 32, warp = thread - lane;
	widen_words(dtype, a, 4, a_rooms[thread][0]);
	widen_words(dtype, b, 2, b_rooms[thread][0]);
	standin_barrier();
	for (int i = 0; i < 4; i++)
		for (int k = 0; k < 16; k++)
			sums[i] += a_rooms[warp + lane / 4 * 4 + k % 8 / 2][i / 2 + 2 * (k / 8)][k % 2] *
				   b_rooms[warp + (2 * (lane % 4) + i % 2) * 4 + k % 8 / 2][k / 8][k % 2];
	standin_barrier();
}

static inline uint two_of(enum smalti_dtype dtype, float first, float second)
{
	if (dtype == SMALTI_BF16)
		return bf16_of(first) | (uint)bf16_of(second) << 16;
	return smalti_f32_to_f16(first) | (uint)smalti_f32_to_f16(second) << 16;
}

template <typename T> static inline T of_other_lane(T value, int mask)
{
	static T rooms[ROOMS];
	rooms[THREAD] = value;
	standin_barrier();
	const T other = rooms[THREAD ^ mask];
	standin_barrier();
	return other;
}
