/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <time.h>

/* Returns seconds since some moment in the past, which never decrease. */
double smalti_now(void);
/* Returns seconds since 1970, for people. */
double smalti_wall_clock(void);

/* Returns the seconds of CPU time of the calling thread. */
double smalti_thread_clock(void);

/* Returns the CLOCK_MONOTONIC time in `nanoseconds` from now, for pthread_cond_clockwait(): with a clock that
 * can be set back, waits would last longer. */
struct timespec smalti_deadline(int64_t nanoseconds);
