/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/dit_weights.h"
#include "graphs/load.h"

/* What is counted of the transformer at one place, and which of its branches and stages is looked at. */
struct smalti_dit_count {
	const struct smalti_dit *dit;
	const struct smalti_tokens *tokens;
	const struct smalti_strategy *strategy;
	int place, branch, stage;
	double element; /* bytes of a value of the products' dtype */
	double rows;    /* of a task */
	struct smalti_load load;
};

static inline struct smalti_dit_count smalti_dit_count_at(const struct smalti_denoiser *denoiser,
							  const struct smalti_tokens *tokens, int place)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	return (struct smalti_dit_count){.dit = dit,
					 .tokens = tokens,
					 .strategy = tokens->strategy,
					 .place = place,
					 .element = (double)smalti_dtype_bytes(dit->compute)};
}

static inline int smalti_dit_count_parts(const struct smalti_dit_count *c, enum smalti_axis axis)
{
	return c->strategy->parts[axis];
}

/* Whether shards have their part of the weights. */
static inline bool smalti_dit_count_is_tensor(const struct smalti_dit_count *c)
{
	return c->strategy->tensor && smalti_dit_count_parts(c, SMALTI_AXIS_SHARD) > 1;
}

static inline bool smalti_dit_count_is_at(const struct smalti_dit_count *c, int shard, int rank)
{
	return smalti_strategy_place(c->strategy, c->branch, c->stage, shard, rank) == c->place;
}

static inline double smalti_dit_count_rows(const struct smalti_dit_count *c, int64_t band)
{
	return (double)smalti_partition_rows(&c->tokens->partition, band);
}

/* Of `all` heads or columns, those of a shard. */
static inline double smalti_dit_count_of_shard(const struct smalti_dit_count *c, int64_t all, int shard)
{
	const enum smalti_axis axis = SMALTI_AXIS_SHARD;
	return (double)(smalti_strategy_begin(c->strategy, axis, all, shard + 1) -
			smalti_strategy_begin(c->strategy, axis, all, shard));
}
