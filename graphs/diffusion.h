/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "graphs/denoiser.h"
#include "samplers/sampler.h"

/* An image to begin with (docs/reference.md 4.6). */
struct smalti_diffusion_image {
	struct smalti_tile *moments; /* of the VAE: means and deviations [2, in_channels, height, width] */
	const struct smalti_vae_config *vae; /* which has the scales of its latents */
	bool draws;                          /* latents are drawn; else they are the means */
	const float *mask; /* planes [in_channels, height, width]: behind each step the image is put back,
			      with the step's noise, where it is 0; NULL: nowhere */
	bool from_noise;   /* the first latents are noise alone */
};

/* How a step cache is used (graphs/step_cache.h). The insertion of the denoising then waits in each step. */
struct smalti_diffusion_cache {
	struct smalti_step_cache_rule rule;
	void (*wait)(void *user); /* see struct smalti_step_cache_arguments; NULL is allowed */
	/* Is called when all has been decided; what it is given is valid until it returns. */
	void (*report)(void *user, const struct smalti_step_report *report);
	void *user;
};

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
	const struct smalti_diffusion_image *start; /* NULL: noise, or `latents` */
	const float *latents; /* NULL: noise; else the first latents: planes [in_channels, height, width], in
				 the model's scale */
	float guidance;
	const struct smalti_diffusion_cache *step_cache; /* NULL: every step is computed in full */
	/* one without guidance: the prompt's; else two: {negative, prompt} */
	struct smalti_cross_cache *caches[2];
	int cache_count;
};

/* Returns the final latents as f32 planes [in_channels, height, width]; the caller releases the tile. */
struct smalti_tile *smalti_diffuse(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
				   const struct smalti_diffusion *diffusion);
