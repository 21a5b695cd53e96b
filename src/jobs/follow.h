/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ranks/ranks.h"
#include "smalti/generate.h"

/* A broadcast of rank 0 to the other ranks, so that all submit the same images to their batches. */
struct smalti_broadcast {
	bool ends; /* the batch is closed, and nothing follows */
	bool rows; /* the image is decoded */
	int64_t image;
	struct smalti_request request; /* its data lies behind it */
};

/* Sends a broadcast from rank 0; with one rank it does nothing. */
void smalti_broadcast_image(const struct smalti_request *request, int64_t image,
			    const struct smalti_image_callbacks *callbacks);
void smalti_broadcast_end(void);

/* Returns the next broadcast on another rank, which calls `idle` while it waits. Free with free(). */
struct smalti_broadcast *smalti_broadcast_receive(void (*idle)(void *user), void *user);

/* Submits on another rank what rank 0 does, until it closes its batch. Both open session, model and batch
 * alike. */
void smalti_batch_follow(struct smalti_batch *batch);
/* Refuses images that rank 0 broadcasts from now on, on all ranks, with SMALTI_ECANCELLED and this cause,
 * which outlives the batch. A signal handler may call it. */
void smalti_batch_refuse(struct smalti_batch *batch, const char *cause);
