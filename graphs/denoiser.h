/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/strategy.h"
#include "graphs/weights.h"

/* A model that denoises latents, as the pipeline sees it: a table of functions, and the extents that others
 * go by. A model of another architecture has this as its first member and a table of its own. */
struct smalti_denoiser;

enum { SMALTI_DENOISER_MAX_BRANCHES = 2 }; /* without and with the prompt */

/* Of a prompt, the keys and values of its cross-attention, which all steps read; of a size, what all steps
 * need. They are the model's. */
struct smalti_cross_cache;
struct smalti_conditions;

struct smalti_denoiser_functions {
	void (*free)(struct smalti_denoiser *denoiser);

	/* Bytes of the cross-attention cache of a prompt of so many tokens, and of making it. */
	int64_t (*cross_cache_bytes)(const struct smalti_denoiser *denoiser, int64_t tokens);
	/* The most that a forward in bands of `band_tokens` holds at once, besides the weights and caches.
	 */
	int64_t (*working_bytes)(const struct smalti_denoiser *denoiser, int64_t tokens, int64_t band_tokens,
				 int branches, const struct smalti_strategy *strategy);
	/* Makes the same model of so many layers, with weights of the checkpoint. */
	struct smalti_denoiser *(*sketch)(const struct smalti_denoiser *denoiser,
					  struct smalti_task_group *task_group,
					  const struct smalti_checkpoint *checkpoint, int64_t layers,
					  struct smalti_error *error);

	/* `text` f32 [tokens, text_width]. */
	struct smalti_cross_cache *(*cross_cache)(struct smalti_denoiser *denoiser,
						  struct smalti_task_group *task_group,
						  struct smalti_tile *text, int64_t tokens);
	void (*release_cross_cache)(struct smalti_cross_cache *cache); /* NULL is fine */

	/* For a latent of height by width, vae_factor pixels to a latent, cut into these tokens, which
	 * outlive them. */
	struct smalti_conditions *(*conditions)(struct smalti_denoiser *denoiser,
						struct smalti_task_group *task_group,
						const struct smalti_tokens *tokens, const float *timesteps,
						int64_t steps, int64_t height, int64_t width,
						int64_t vae_factor);
	void (*release_conditions)(struct smalti_conditions *conditions); /* NULL is fine */

	/* One forward at `step`, after those before it, for each prompt: x are the latents' tokens f32
	 * [n, in_channels·patch²] in bands, multiplied by input_scale on the way in. v[k] receives the output
	 * f32 [n, patch²·out_channels] for caches[k]; what the prompts have in common is computed once. The
	 * caller releases the v. */
	void (*forward)(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
			struct smalti_conditions *conditions, int64_t step, float input_scale,
			const struct smalti_grid *x, struct smalti_cross_cache *const *caches, int count,
			struct smalti_grid *v);
};

struct smalti_denoiser {
	const struct smalti_denoiser_functions *functions;
	struct smalti_weights *weights;
	int64_t in_channels, out_channels; /* of the latents, and of what is made of them */
	int64_t patch_size;                /* a token's side, in latents */
	int64_t sample_size;               /* native side of the latent */
	int64_t layers;                    /* that are alike, but for the first */
	int64_t text_width;                /* of the hidden states that captions are made of */
};

/* NULL is allowed. */
static inline void smalti_denoiser_free(struct smalti_denoiser *denoiser)
{
	if (denoiser)
		denoiser->functions->free(denoiser);
}
