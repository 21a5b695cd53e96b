/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/step_cache.h"
#include "graphs/strategy/strategy.h"
#include "graphs/weights.h"

/* A model that denoises latents, as the pipeline sees it: a table of functions, and the extents that callers
 * need. Another architecture has this as its model's first member, and its own table. */
struct smalti_denoiser;

enum { SMALTI_DENOISER_MAX_BRANCHES = 2 }; /* without and with the prompt */

/* A prompt's keys and values for cross-attention, which all steps read, and what all steps need for a size.
 * The model owns both. */
struct smalti_cross_cache;
struct smalti_conditions;

struct smalti_denoiser_functions {
	void (*free)(struct smalti_denoiser *denoiser);

	/* Returns the bytes of a prompt's cross cache, and of its making. */
	int64_t (*cross_cache_bytes)(const struct smalti_denoiser *denoiser, int64_t tokens);
	/* Returns the most bytes that a forward in bands of `band_tokens` holds, besides the weights and
	 * caches. */
	int64_t (*working_bytes)(const struct smalti_denoiser *denoiser, int64_t tokens, int64_t band_tokens,
				 int branches, const struct smalti_strategy *strategy);
	/* Makes such a model of so many layers, with weights of the checkpoint. */
	struct smalti_denoiser *(*sketch)(const struct smalti_denoiser *denoiser,
					  struct smalti_task_group *task_group,
					  const struct smalti_checkpoint *checkpoint, int64_t layers,
					  struct smalti_error *error);

	/* Makes a model with the same weights and, unmerged, the adapters' changes, which both outlive it.
	 * They are of LoRA alone. */
	struct smalti_denoiser *(*adapted)(const struct smalti_denoiser *denoiser,
					   struct smalti_task_group *task_group,
					   const struct smalti_adapter_set *adapters,
					   struct smalti_error *error);

	/* Takes `text` as f32 [tokens, text_width]. */
	struct smalti_cross_cache *(*cross_cache)(struct smalti_denoiser *denoiser,
						  struct smalti_task_group *task_group,
						  struct smalti_tile *text, int64_t tokens);
	void (*release_cross_cache)(struct smalti_cross_cache *cache); /* NULL is fine */

	/* Makes the conditions for a latent of height by width, with vae_factor pixels to a latent. They use
	 * these tokens, which outlive them. */
	struct smalti_conditions *(*conditions)(struct smalti_denoiser *denoiser,
						struct smalti_task_group *task_group,
						const struct smalti_tokens *tokens, const float *timesteps,
						int64_t steps, int64_t height, int64_t width,
						int64_t vae_factor);
	void (*release_conditions)(struct smalti_conditions *conditions); /* NULL is fine */

	/* Inserts one forward at `step`, after earlier steps, for each prompt: x are the latents' tokens f32
	 * [n, in_channels·patch²] in bands, multiplied by input_scale first. v[k] receives the output f32 [n,
	 * patch²·out_channels] for caches[k]. Results that depend on no prompt are computed once. The caller
	 * releases the v. With a step cache (NULL: none) it may be computed in part, and waits. */
	void (*forward)(struct smalti_denoiser *denoiser, struct smalti_task_group *task_group,
			struct smalti_conditions *conditions, int64_t step, float input_scale,
			const struct smalti_grid *x, struct smalti_cross_cache *const *caches, int count,
			struct smalti_step_cache *step_cache, struct smalti_grid *v);
};

struct smalti_denoiser {
	const struct smalti_denoiser_functions *functions;
	struct smalti_weights *weights;
	int64_t in_channels, out_channels; /* of the latents, and of the output */
	int64_t patch_size;                /* a token's side, in latents */
	int64_t sample_size;               /* native side of the latent */
	int64_t layers, width;             /* layers: all alike, except the first */
	int64_t text_width;                /* of a caption's hidden states */
};

/* Accepts NULL. */
static inline void smalti_denoiser_free(struct smalti_denoiser *denoiser)
{
	if (denoiser)
		denoiser->functions->free(denoiser);
}
