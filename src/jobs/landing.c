/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/landing.h"

#include <time.h>

enum { SECOND = 1000000000, TENTH = SECOND / 10 }; /* in nanoseconds */

void smalti_landing_init(struct smalti_landing *landing)
{
	pthread_mutex_init(&landing->mutex, NULL);
	pthread_cond_init(&landing->any, NULL);
	landing->landed = NULL;
}

void smalti_landing_destroy(struct smalti_landing *landing)
{
	pthread_cond_destroy(&landing->any);
	pthread_mutex_destroy(&landing->mutex);
}

void smalti_land(struct smalti_landing *landing, struct smalti_landed *flight)
{
	pthread_mutex_lock(&landing->mutex);
	flight->next = landing->landed;
	landing->landed = flight;
	pthread_cond_signal(&landing->any);
	pthread_mutex_unlock(&landing->mutex);
}

struct smalti_landed *smalti_landing_take(struct smalti_landing *landing)
{
	pthread_mutex_lock(&landing->mutex);
	struct smalti_landed *landed = landing->landed;
	landing->landed = NULL;
	pthread_mutex_unlock(&landing->mutex);
	return landed;
}

bool smalti_landing_await(struct smalti_landing *landing)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += TENTH;
	until.tv_sec += until.tv_nsec / SECOND;
	until.tv_nsec %= SECOND;
	pthread_mutex_lock(&landing->mutex);
	int status = 0;
	while (!landing->landed && status == 0)
		status = pthread_cond_timedwait(&landing->any, &landing->mutex, &until);
	const bool any = landing->landed != NULL;
	pthread_mutex_unlock(&landing->mutex);
	return any;
}
