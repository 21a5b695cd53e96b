/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"

struct smalti_conditions {
	int64_t steps;
	int64_t columns;               /* patches in a row of the image */
	struct smalti_tile *timestep;  /* e, f32 [steps, width] (3.3) */
	struct smalti_tile *adaln;     /* g, f32 [steps·6, width] */
	struct smalti_tile *positions; /* see smalti_positions() */
};

/* See struct smalti_denoiser_functions. */
struct smalti_conditions *smalti_dit_conditions(struct smalti_denoiser *denoiser,
						struct smalti_task_group *task_group, const float *timesteps,
						int64_t steps, int64_t height, int64_t width,
						int64_t vae_factor);
void smalti_dit_release_conditions(struct smalti_conditions *conditions);
