/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/pixart/weights.h"

/* See struct smalti_denoiser_functions. */
void smalti_dit_forward(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
			struct smalti_conditions *conditions, int64_t step, float input_scale,
			const struct smalti_grid *x, struct smalti_cross_cache *const *caches, int count,
			struct smalti_step_cache *step_cache, struct smalti_grid *v);
