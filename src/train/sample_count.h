/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* A trainer that counts samples (rt/counting.h) and does not compute them. */
struct smalti_sample_count {
	struct smalti_trainer trainer;
	struct smalti_tile **gradients; /* of each parameter */
};

/* Opens a count. Close it in any case. */
int smalti_sample_count_open(struct smalti_sample_count *count, const struct smalti_trainer *trainer,
			     struct smalti_error *error);
/* Returns the most bytes of main memory of a sample's tiles, from its first task to its last, by the plan:
 * with barriers between layers in any order of tasks, and without, even if all exist together. -1 with an
 * error. */
int64_t smalti_sample_count_bytes(struct smalti_sample_count *count, const struct smalti_step_shape *shape,
				  const struct smalti_step_plan *plan, struct smalti_error *error);
void smalti_sample_count_close(struct smalti_sample_count *count);
