/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>
#include <time.h>

/* Seconds since some moment in the past, which never go back. */
double smalti_now(void);
/* Seconds since 1970, for people. */
double smalti_wall_clock(void);

/* Seconds that the calling thread has been computing. */
double smalti_thread_clock(void);

/* The time of CLOCK_MONOTONIC in so many nanoseconds, for pthread_cond_clockwait(): by a clock that can be
 * set back, waits would last as long as it was. */
struct timespec smalti_deadline(int64_t nanoseconds);
