/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/ranks.h"
#include "smalti/generate.h"

/* What rank 0 has the other ranks do, so that all submit the same images to their batches. */
struct smalti_order {
	bool ends; /* the batch is closed, and nothing follows */
	bool rows; /* the image is decoded */
	int64_t image;
	struct smalti_request request; /* what it points to lies behind it */
};

/* By rank 0; nothing where there is one rank. */
void smalti_order_image(const struct smalti_request *request, int64_t image,
			const struct smalti_image_callbacks *callbacks);
void smalti_order_end(void);

/* The next one, by another rank, which calls `idle` meanwhile. Free with free(). */
struct smalti_order *smalti_order_hear(void (*idle)(void *user), void *user);

/* By the other ranks, which open session, model and batch as rank 0 does: submits what that does, until it
 * closes its batch. */
void smalti_batch_follow(struct smalti_batch *batch);
/* Images that rank 0 orders from now on are refused on all ranks, with SMALTI_ECANCELLED and this cause,
 * which outlives the batch. Safe in a signal handler. */
void smalti_batch_refuse(struct smalti_batch *batch, const char *cause);
