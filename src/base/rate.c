/* SPDX-License-Identifier: Apache-2.0 */
#include "base/rate.h"
#include "base/clock.h"

#include <time.h>

/* Seconds after which a lifted limit is noticed. */
static const double PIECE = 0.1;

void smalti_rate_open(struct smalti_rate *rate, int64_t limit)
{
	*rate = (struct smalti_rate){.limit = limit};
	pthread_mutex_init(&rate->mutex, NULL);
}

void smalti_rate_close(struct smalti_rate *rate)
{
	pthread_mutex_destroy(&rate->mutex);
}

double smalti_rate_add_at(struct smalti_rate *rate, int64_t bytes, double now)
{
	HOLD_MUTEX(&rate->mutex);
	rate->bytes += bytes;
	if (rate->passed < now)
		rate->passed = now;
	if (rate->limit)
		rate->passed += (double)bytes / (double)rate->limit;
	return rate->passed;
}

void smalti_rate_add(struct smalti_rate *rate, int64_t bytes)
{
	if (rate)
		smalti_rate_add_at(rate, bytes, smalti_now());
}

static double passed(struct smalti_rate *rate)
{
	HOLD_MUTEX(&rate->mutex);
	return rate->passed;
}

void smalti_rate_await(struct smalti_rate *rate)
{
	const double until = passed(rate);
	for (double left; !atomic_load(&rate->lifted) && (left = until - smalti_now()) > 0;) {
		const double piece = left < PIECE ? left : PIECE;
		nanosleep(&(struct timespec){.tv_nsec = (long)(piece * 1e9)}, NULL);
	}
}

void smalti_rate_lift(struct smalti_rate *rate)
{
	atomic_store(&rate->lifted, true);
}

int64_t smalti_rate_bytes(struct smalti_rate *rate)
{
	HOLD_MUTEX(&rate->mutex);
	return rate->bytes;
}
