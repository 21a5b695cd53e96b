/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"

#include <time.h>

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
