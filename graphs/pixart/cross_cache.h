/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/pixart/block.h"

struct smalti_cross_cache {
	int64_t tokens, layers;
	/* For each block its keys and values; for a prompt of one token the row [1, width] that its
	 * cross-attention adds to every token, as a single key has all the weight. */
	struct smalti_value block[];
};

/* See struct smalti_denoiser_functions. */
int64_t smalti_dit_cross_cache_bytes(const struct smalti_denoiser *denoiser, int64_t tokens);
struct smalti_cross_cache *smalti_dit_cross_cache(struct smalti_denoiser *denoiser,
						  struct smalti_task_group *task_group,
						  struct smalti_tile *text, int64_t tokens);
void smalti_dit_release_cross_cache(struct smalti_cross_cache *cache);

/* Returns a shard's heads of a block's keys and values. They are taken at the first call and kept for all
 * passes. */
struct smalti_value smalti_dit_caption_shard(const struct smalti_dit_forward *f,
					     struct smalti_dit_position at,
					     const struct smalti_cross_cache *cache, int shard);
