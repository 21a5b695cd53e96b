/* SPDX-License-Identifier: Apache-2.0
 *
 * Sums over a group's threads, and the largest of their values, the same for all of them. Every order of
 * addition is fixed by how many there are: of CUDA whole warps. */
#pragma once

#define ADDED(a, b) ((a) + (b))

/* sum_once() needs so many places of `room`, which may be used again behind the group's next barrier. */
#ifdef SMALTI_OPENCL
#define SUM_ROOM(threads) (threads)
#define DEFINE_ONCE(name, type, joined)                                                                      \
	DEVICE type name(type value, LOCAL type *room)                                                       \
	{                                                                                                    \
		room[THREAD] = value;                                                                        \
		BARRIER();                                                                                   \
		for (int left = THREADS; left > 1; left = (left + 1) / 2) {                                  \
			const int kept = (left + 1) / 2;                                                     \
			if (THREAD + kept < left)                                                            \
				room[THREAD] = joined(room[THREAD], room[THREAD + kept]);                    \
			BARRIER();                                                                           \
		}                                                                                            \
		return room[0];                                                                              \
	}
#else
#define SUM_ROOM(threads) ((threads) / 32)
#define DEFINE_ONCE(name, type, joined)                                                                      \
	DEVICE type name(type value, LOCAL type *room)                                                       \
	{                                                                                                    \
		UNROLL                                                                                       \
		for (int mask = 16; mask > 0; mask /= 2)                                                     \
			value = joined(value, of_other_lane(value, mask));                                   \
		if (LANE == 0)                                                                               \
			room[THREAD / 32] = value;                                                           \
		BARRIER();                                                                                   \
		type all = room[0];                                                                          \
		for (int warp = 1; warp < THREADS / 32; warp++)                                              \
			all = joined(all, room[warp]);                                                       \
		return all;                                                                                  \
	}
#endif
DEFINE_ONCE(sum_once, float, ADDED)
DEFINE_ONCE(sum_once_double, double, ADDED)
DEFINE_ONCE(most_once, float, fmax)

/* `room` may be used again at once. @{ */
DEVICE float group_sum(float value, LOCAL float *room)
{
	const float sum = sum_once(value, room);
	BARRIER();
	return sum;
}

DEVICE double group_sum_double(double value, LOCAL double *room)
{
	const double sum = sum_once_double(value, room);
	BARRIER();
	return sum;
}
/* @} */
