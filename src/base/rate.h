/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

/* Counts bytes of any threads, and lets them pass one after the other at a limited rate: a token bucket
 * without a burst, so that n bytes take n / rate seconds at least. */
struct smalti_rate {
	int64_t limit; /* bytes per second; 0: none */
	atomic_bool lifted;
	pthread_mutex_t mutex; /* guards what follows */
	int64_t bytes;
	double passed; /* when all added bytes have passed, by smalti_now() */
};

void smalti_rate_open(struct smalti_rate *rate, int64_t limit);
void smalti_rate_close(struct smalti_rate *rate);

/* Adds bytes at the time `now`; returns when they will have passed. */
double smalti_rate_add_at(struct smalti_rate *rate, int64_t bytes, double now);
/* Adds bytes now, without waiting. NULL is allowed. */
void smalti_rate_add(struct smalti_rate *rate, int64_t bytes);
/* Waits until all bytes added so far have passed, or the limit is lifted. */
void smalti_rate_await(struct smalti_rate *rate);
/* Lifts the limit: all waits end. */
void smalti_rate_lift(struct smalti_rate *rate);
int64_t smalti_rate_bytes(struct smalti_rate *rate);
