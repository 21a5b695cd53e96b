/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Requests that wait. Clients take turns image by image, as a client's own requests do: a client that asks
 * for much waits for itself. An image's turn is one behind the client's last, so that the first image of a
 * client goes before the tenth of another among those that are being made, too. The caller's mutex guards all
 * of it. */

struct smalti_serve_client;

/* A request that waits; the first member of the caller's job. */
struct smalti_serve_waiting {
	struct smalti_serve_waiting *next;
	struct smalti_serve_client *client;
	bool waits;
	int64_t images; /* left, of those that it waits for */
	int64_t taken;
	int64_t turn; /* of the image that was taken last */
};

struct smalti_serve_limits {
	int64_t waiting;   /* images of all clients */
	int64_t of_client; /* images of one */
	int64_t rate;      /* requests of a client in a minute, as many of them at once; 0: any number */
	int64_t active;    /* images of a client that were taken and are not done; 0: any number */
};

enum smalti_serve_admission {
	SMALTI_SERVE_ADMITTED,
	SMALTI_SERVE_TOO_FAST,  /* more than its rate */
	SMALTI_SERVE_TOO_MANY,  /* too many of the client's images wait */
	SMALTI_SERVE_FULL,      /* too many images of all wait */
	SMALTI_SERVE_NO_MEMORY, /* for one more client */
};

struct smalti_serve_queue {
	struct smalti_serve_limits limits;
	pthread_cond_t any;                  /* told when there may be something to take */
	struct smalti_serve_client *clients; /* the one whose turn is next stands first */
	int64_t waiting, client_count;
	int64_t turn; /* the latest of an image that is done */
};

void smalti_serve_queue_open(struct smalti_serve_queue *queue, const struct smalti_serve_limits *limits);
/* Frees it when nobody waits. */
void smalti_serve_queue_close(struct smalti_serve_queue *queue);

/* Takes `now` in seconds of a clock that does not go back. */
enum smalti_serve_admission smalti_serve_queue_put(struct smalti_serve_queue *queue, const char *client,
						   double now, struct smalti_serve_waiting *waiting);
/* Takes an image of the request whose turn it is; NULL: there is none, or its client has enough images in the
 * batch. A request leaves with its last image. */
struct smalti_serve_waiting *smalti_serve_queue_take(struct smalti_serve_queue *queue);
/* Notes that an image that was taken, of that turn, is done. */
void smalti_serve_queue_done(struct smalti_serve_queue *queue, const struct smalti_serve_waiting *waiting,
			     int64_t turn);
/* Removes a request that waits; returns whether it waited. */
bool smalti_serve_queue_leave(struct smalti_serve_queue *queue, struct smalti_serve_waiting *waiting);
/* Returns a request of which nothing was taken; NULL: there is none. */
struct smalti_serve_waiting *smalti_serve_queue_untouched(const struct smalti_serve_queue *queue);
