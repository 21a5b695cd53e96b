/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* A trainer that counts samples (rt/counting.h) and does not compute them. */
struct smalti_sample_count {
	struct smalti_trainer trainer;
	struct smalti_tile **gradients; /* of each parameter */
};

/* Opens a count. The caller closes it in any case. */
int smalti_sample_count_open(struct smalti_sample_count *count, const struct smalti_trainer *trainer,
			     struct smalti_error *error);
/* Returns the bytes of main memory that the tiles of a sample of this shape take at most from its first task
 * to its last. If layers take turns in the plan, that holds for any order of the tasks; otherwise even if all
 * tiles exist together. -1 with an error. */
int64_t smalti_sample_count_bytes(struct smalti_sample_count *count, const struct smalti_step_shape *shape,
				  const struct smalti_step_plan *plan, struct smalti_error *error);
void smalti_sample_count_close(struct smalti_sample_count *count);
