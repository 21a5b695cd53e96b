/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "codelets/codelets.h"

/* Turns the diffusion model's latents into the VAE's, by a scale and a shift for each channel. */
struct smalti_latent_transform {
	struct smalti_tile *scale, *shift; /* f32, one per channel */
	struct smalti_tile *identity;      /* moments that normalise nothing */
};

struct smalti_latent_transform smalti_latent_transform_new(struct smalti_task_group *task_group,
							   const struct smalti_vae_config *config);
/* Inserts y = scale·x + shift of f32 [pixels, channels]. */
void smalti_latent_transform_insert(struct smalti_task_group *task_group,
				    const struct smalti_latent_transform *transform, int64_t pixels,
				    int64_t channels, struct smalti_tile *x, struct smalti_tile *y);
void smalti_latent_transform_release(struct smalti_latent_transform *transform);
