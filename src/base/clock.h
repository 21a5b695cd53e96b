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

/* The time of the clock in so many nanoseconds, for pthread_cond_timedwait(). */
struct timespec smalti_deadline(clockid_t clock, int64_t nanoseconds);
