/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/parameters.h"
#include "smalti/train.h"

/* AdamW or CAME for the tiles of all parameters. */
struct smalti_optimizer {
	const struct smalti_optimizer_options *options;
	const struct smalti_parameters *parameters;
	struct smalti_parameter *state; /* mean.NAME, square.NAME, factors.NAME; owns the names */
	int64_t state_count;
	struct smalti_optimizer_group *groups;
	int64_t group_count;
};

/* Makes the state before the first step, by tasks of the task group. Options and parameters outlive it. */
struct smalti_optimizer *smalti_optimizer_new(struct smalti_task_group *task_group,
					      const struct smalti_parameters *parameters,
					      const struct smalti_optimizer_options *options,
					      struct smalti_error *error);
void smalti_optimizer_free(struct smalti_optimizer *optimizer);

struct smalti_update {
	int64_t step; /* of the optimizer, from 1 on */
	double rate;
	double gradient_scale; /* gradients are multiplied by this first */
};

/* Updates the parameters by gradients[i] of parameter i. */
void smalti_optimizer_update(const struct smalti_optimizer *optimizer, struct smalti_task_group *task_group,
			     struct smalti_tile *const *gradients, const struct smalti_update *update);
