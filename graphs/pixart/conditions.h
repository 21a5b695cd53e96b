/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"
#include "graphs/strategy/strategy.h"

/* Positions of tokens from `first` on, of an image that is `columns` patches wide. */
struct smalti_position_table {
	struct smalti_tile *tile; /* see smalti_positions() */
	int64_t first, columns;
};

/* Tiles that a pass makes for itself. */
struct smalti_dit_streams {
	struct smalti_tile *modulation, *final; /* of all blocks, and of the final layer */
	struct smalti_grid stream[SMALTI_DENOISER_MAX_BRANCHES];
};
/* Releases those that were made. */
void smalti_dit_streams_release(struct smalti_dit_streams *pass);

struct smalti_conditions {
	const struct smalti_tokens *tokens;
	const struct smalti_dit_shards *shards; /* into which their strategy cuts the model */
	int64_t steps, layers;
	struct smalti_tile *timestep; /* e, f32 [steps, width] (3.3) */
	struct smalti_tile *adaln;    /* g, f32 [steps·6, width] */
	int tables;
	struct smalti_position_table *positions; /* one of the image, or one for each rank */
	/* Keys and values that a later pass reads, and shards of the captions', of each branch and block;
	 * NULL where the strategy has none. */
	struct smalti_tile **kept, **captions;
	/* Tiles of the last pass. The next one reuses them if one device repeats its commands, which hold
	 * addresses. */
	struct smalti_dit_streams pass;
};

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
