/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Requests that wait, of clients that take turns image by image, as a client's own requests do: a client that
 * asks for much waits for itself. An image's turn is one behind the client's last, so that among those in
 * work, too, the first of a client goes before the tenth of another. The caller's mutex guards all of it. */

struct smalti_serve_client;

/* One that waits; the first member of what the caller waits with. */
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
	int64_t in_work;   /* images of a client that were taken and are not done; 0: any number */
};

enum smalti_serve_admission {
	SMALTI_SERVE_ADMITTED,
	SMALTI_SERVE_TOO_FAST,  /* more than its rate */
	SMALTI_SERVE_TOO_MANY,  /* the client's own are waiting */
	SMALTI_SERVE_FULL,      /* those of all are */
	SMALTI_SERVE_NO_MEMORY, /* to know one more client by */
};

struct smalti_serve_queue {
	struct smalti_serve_limits limits;
	pthread_cond_t any;                  /* told when there may be something to take */
	struct smalti_serve_client *clients; /* whose turn is next stands first */
	int64_t waiting, client_count;
	int64_t turn; /* the latest of an image that is done */
};

void smalti_serve_queue_open(struct smalti_serve_queue *queue, const struct smalti_serve_limits *limits);
/* When nobody waits. */
void smalti_serve_queue_close(struct smalti_serve_queue *queue);

/* `now`: seconds of any clock that does not go back. */
enum smalti_serve_admission smalti_serve_queue_put(struct smalti_serve_queue *queue, const char *client,
						   double now, struct smalti_serve_waiting *waiting);
/* The request whose turn it is, for one image; NULL: there is none, or its client has enough in work. It has
 * left when no image is left. */
struct smalti_serve_waiting *smalti_serve_queue_take(struct smalti_serve_queue *queue);
/* An image of that turn, which was taken, is done. */
void smalti_serve_queue_done(struct smalti_serve_queue *queue, const struct smalti_serve_waiting *waiting,
			     int64_t turn);
/* Whether it waited: it does not any more. */
bool smalti_serve_queue_leave(struct smalti_serve_queue *queue, struct smalti_serve_waiting *waiting);
/* One of which nothing was taken; NULL: there is none. */
struct smalti_serve_waiting *smalti_serve_queue_untouched(const struct smalti_serve_queue *queue);
