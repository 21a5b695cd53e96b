/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

static double read_clock(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

double smalti_now(void)
{
	return read_clock(CLOCK_MONOTONIC);
}

double smalti_wall_clock(void)
{
	return read_clock(CLOCK_REALTIME);
}

double smalti_thread_clock(void)
{
	return read_clock(CLOCK_THREAD_CPUTIME_ID);
}

struct timespec smalti_deadline(int64_t nanoseconds)
{
	enum { SECOND = 1000000000 };
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	nanoseconds += time.tv_nsec;
	return (struct timespec){.tv_sec = time.tv_sec + nanoseconds / SECOND,
				 .tv_nsec = nanoseconds % SECOND};
}
