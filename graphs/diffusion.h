/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"
#include "samplers/sampler.h"

/* The denoising of one image: from noise (or given latents) through all steps of a sampler. */
struct smalti_diffusion {
	const struct smalti_sampler *sampler;
	int64_t height, width; /* of the latent, multiples of the patch size */
	int64_t vae_factor;
	int64_t band_tokens; /* tokens in a band */
	const struct smalti_strategy *strategy;
	uint64_t seed;
	int64_t image, images; /* draws from the seed's stream are for all `images`; this one has part `image`
				  of each (docs/reference.md 8.1) */
	enum smalti_dtype noise_dtype;
	const float *latents; /* NULL: noise; else the first latents: planes [in_channels, height, width], in
				 the model's scale */
	float guidance;
	/* one without guidance: the prompt's; else two: {negative, prompt} */
	struct smalti_cross_cache *caches[2];
	int cache_count;
};

/* Returns the final latents as f32 planes [in_channels, height, width]; the caller releases the tile. */
struct smalti_tile *smalti_diffuse(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
				   const struct smalti_diffusion *diffusion);
