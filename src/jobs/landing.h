/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_LANDING_H
#define SMALTI_JOBS_LANDING_H

#include <pthread.h>
#include <stdbool.h>

/* What is in flight ends on a worker, and is looked at by the thread that sent it off. */

/* The first member of what is in flight. */
struct smalti_landed {
	struct smalti_landed *next;
};

struct smalti_landing {
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t any;
	struct smalti_landed *landed; /* and not taken yet */
};

void smalti_landing_init(struct smalti_landing *landing);
void smalti_landing_destroy(struct smalti_landing *landing);

/* On any thread; `flight` must not be touched after it. */
void smalti_land(struct smalti_landing *landing, struct smalti_landed *flight);
/* All that have landed since, the last one first; NULL: none. */
struct smalti_landed *smalti_landing_take(struct smalti_landing *landing);
/* Until one can be taken, but no longer than a tenth of a second: who waits may have to tell how far it is.
 */
bool smalti_landing_await(struct smalti_landing *landing);

#endif
