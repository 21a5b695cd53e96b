/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/strategy.h"

/* The order in which a step inserts its samples. Sample i is in lane i mod `lanes`, whose sums of gradients
 * it is added to. The lanes of a replica follow each other; in turn k each replica inserts its k-th lane, by
 * turns a sample of each. Lanes are added in a tree: for s = 1, 2, 4, … lane i += lane i + s, for i a
 * multiple of 2·s, behind the turn in which the last sample of both halves was inserted. */
struct smalti_step_order {
	int64_t batch, lanes;
	struct smalti_step_slot {
		int64_t sample, lane;
		int replica;
		bool begins, ends; /* ends: it is the last of its turn */
	} * slot;                  /* of each sample; owned */
	/* Of each lane, owned: the slot that begins it, and how many were inserted when it is added to
	 * another; INT64_MAX: it is the first. @{ */
	int64_t *begun, *added;
	/* @} */
};

/* Returns the replica of a sample of a batch. */
int smalti_step_replica(const struct smalti_strategy *strategy, int64_t lanes, int64_t sample);
int smalti_step_order_open(struct smalti_step_order *order, const struct smalti_strategy *strategy,
			   int64_t batch, int64_t lanes, struct smalti_error *error);
/* Frees it; also after an error, and of zeros. */
void smalti_step_order_close(struct smalti_step_order *order);
/* Tells whether a lane's sums are there when a slot's sample is computed, with so many samples at a time. */
bool smalti_step_order_has(const struct smalti_step_order *order, int64_t lane, int64_t slot,
			   int64_t micro_batch);
