/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* The memory of a step, counted by a trainer that inserts its tasks into a session that runs none
 * (rt/counting.h). Places (rt/places.h) are counted one by one where a strategy places the tasks; without a
 * strategy all is counted at the first. Replicas compute the same at other places, so one of them is
 * counted. */
struct smalti_sample_count {
	struct smalti_trainer trainer;
	int places;
	/* Bytes at each place, during a step: of everything but samples and sums of gradients, and of sums
	 * that come to it when those of replicas and parts are added up. Owned. @{ */
	int64_t *around, *come;
	/* @} */
	/* Bytes at each place, of the first replica: a lane's sums; a sample; and one that begins a lane,
	 * with its sums. Owned. @{ */
	int64_t *lane, *sample, *first;
	/* @} */
	struct smalti_tile ***gradients; /* of each part of each replica; owned */
};

/* Opens a count for samples up to this shape. Close it in any case. */
int smalti_sample_count_open(struct smalti_sample_count *count, const struct smalti_trainer *trainer,
			     const struct smalti_step_shape *shape, struct smalti_error *error);
/* Counts `sample` and `first` by the plan: the most bytes of tiles from the first task to the last, with
 * barriers between layers in any order of tasks, and without, even if all exist together. */
int smalti_sample_count_plan(struct smalti_sample_count *count, const struct smalti_step_shape *shape,
			     const struct smalti_step_plan *plan, struct smalti_error *error);
/* Returns the place at which the first replica computes what this replica computes at `place`. */
int smalti_sample_count_place(const struct smalti_sample_count *count, int replica, int place);
void smalti_sample_count_close(struct smalti_sample_count *count);
