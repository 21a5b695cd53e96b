/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"
#include "samplers/diffusion_loss.h"

/* How well a denoiser tells the noise in an item's latents, at one timestep with one caption, by one
 * forward. */
struct smalti_denoising_error {
	int64_t height, width; /* of the latents, multiples of the patch size */
	int64_t vae_factor;    /* pixels of a latent */
	int64_t band_tokens;   /* most tokens of a band */
	int64_t timestep;      /* from 0 to SMALTI_TRAINING_TIMESTEPS − 1 */
	uint32_t seed;         /* of the noise, as torch's generator draws it */
	const void *means;     /* [in_channels, height, width], as the VAE has them; copied */
	enum smalti_dtype dtype;
	float factor; /* the means times this are the denoiser's latents */
	struct smalti_cross_cache *cache;
};

/* Returns the bytes that its tasks hold at most, besides the caption's. */
int64_t smalti_denoising_error_bytes(const struct smalti_denoiser *denoiser,
				     const struct smalti_denoising_error *error);

/* Inserts the tasks. When the task group has ended, *parts has `mse`, the mean over all values, and nothing
 * else. */
void smalti_denoising_error_insert(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
				   const struct smalti_denoising_error *error,
				   struct smalti_loss_parts *parts);
