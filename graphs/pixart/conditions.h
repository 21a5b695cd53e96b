/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"
#include "graphs/layers/layers.h"
#include "graphs/pixart/weights.h"
#include "graphs/strategy/strategy.h"

/* Positions of tokens from `first` on, of an image that is `columns` patches wide. */
struct smalti_position_table {
	struct smalti_tile *tile; /* see smalti_positions() */
	int64_t first, columns;
};

struct smalti_conditions;

/* A pass makes these values for itself, and releases them. */
struct smalti_dit_streams {
	struct smalti_value modulation, final;                     /* of all blocks, and of the final layer */
	struct smalti_value *stream[SMALTI_DENOISER_MAX_BRANCHES]; /* of each band */
};
/* Releases those that were made. */
void smalti_dit_streams_release(struct smalti_conditions *conditions);

struct smalti_conditions {
	const struct smalti_tokens *tokens;
	const struct smalti_dit_shards *shards; /* into which their strategy cuts the model */
	int64_t steps, layers;
	struct smalti_value timestep; /* e, f32 [steps, width] (3.3) */
	struct smalti_value adaln;    /* g, f32 [steps·6, width] */
	int tables;
	struct smalti_position_table *positions; /* one of the image, or one for each rank */
	/* Keys and values that a later pass reads, and shards of the captions', of each branch and block;
	 * NULL where the strategy has none. */
	struct smalti_value *kept, *captions;
	/* Those of the last pass. The next one reuses them if one device repeats its commands, which hold
	 * addresses. */
	struct smalti_dit_streams pass;
};

/* An image is conditioned on these besides its caption. */
struct smalti_dit_conditioning {
	const float *timesteps;
	int64_t steps;
	float sides[2], ratio; /* of the picture: height and width in pixels, and height to width */
};
/* Makes the conditions on a tape. NULL, with the task group broken, without memory. */
struct smalti_conditions *smalti_dit_conditions_on(struct smalti_tape *tape, struct smalti_dit *dit,
						   const struct smalti_tokens *tokens,
						   const struct smalti_dit_conditioning *conditioning);
/* Returns the caption in the model's width, on a tape. */
struct smalti_value smalti_dit_caption(struct smalti_tape *tape, const struct smalti_dit *dit,
				       struct smalti_value text);

/* See struct smalti_denoiser_functions. */
struct smalti_conditions *smalti_dit_conditions(struct smalti_denoiser *denoiser,
						struct smalti_task_group *task_group,
						const struct smalti_tokens *tokens, const float *timesteps,
						int64_t steps, int64_t height, int64_t width,
						int64_t vae_factor);
void smalti_dit_release_conditions(struct smalti_conditions *conditions);

/* Returns the table of a band's positions. */
const struct smalti_position_table *smalti_dit_positions(const struct smalti_conditions *conditions,
							 int64_t band);
