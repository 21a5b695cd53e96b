/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/shards.h"

enum { MLP_RATIO = 4 };

/* Returns a shard's rows of a layer. */
static struct smalti_linear rows_of(const struct smalti_linear *linear, int64_t first, int64_t count)
{
	const struct smalti_slice slice = {first, count, 0, linear->in};
	return smalti_weights_slice(linear, &slice, true);
}

/* Returns the columns for a shard's inputs; the first shard adds the bias. */
static struct smalti_linear columns_of(const struct smalti_linear *linear, int64_t first, int64_t count)
{
	const struct smalti_slice slice = {0, linear->out, first, count};
	return smalti_weights_slice(linear, &slice, first == 0);
}

static void cut_attention(const struct smalti_dit_attention *whole, int64_t first, int64_t count,
			  struct smalti_dit_attention *part)
{
	part->q = rows_of(&whole->q, first, count);
	part->out = columns_of(&whole->out, first, count);
}

static void cut_block(const struct smalti_dit *dit, const struct smalti_dit_block *whole,
		      const struct smalti_dit_shard *shard, struct smalti_dit_block *part)
{
	const int64_t first = shard->first_head * dit->config.head_dim;
	const int64_t count = shard->heads * dit->config.head_dim;
	part->table = whole->table;
	if (count > 0) {
		cut_attention(&whole->self, first, count, &part->self);
		part->self.kv = rows_of(&whole->self.kv, first, count);
		cut_attention(&whole->cross, first, count, &part->cross);
		if (dit->denoiser.weights->parameters)
			part->cross.kv = rows_of(&whole->cross.kv, first, count);
	}
	if (shard->columns > 0) {
		part->ff_in = rows_of(&whole->ff_in, shard->first_column, shard->columns);
		part->ff_out = columns_of(&whole->ff_out, shard->first_column, shard->columns);
	}
}

static struct smalti_dit_shard extents_of(const struct smalti_dit *dit,
					  const struct smalti_strategy *strategy, int i)
{
	const int64_t heads = dit->config.heads, columns = MLP_RATIO * dit->config.width;
	const enum smalti_axis axis = SMALTI_AXIS_SHARD;
	struct smalti_dit_shard shard = {.first_head = smalti_strategy_begin(strategy, axis, heads, i),
					 .first_column = smalti_strategy_begin(strategy, axis, columns, i)};
	shard.heads = smalti_strategy_begin(strategy, axis, heads, i + 1) - shard.first_head;
	shard.columns = smalti_strategy_begin(strategy, axis, columns, i + 1) - shard.first_column;
	return shard;
}

static bool is_cut_so(const struct smalti_dit *dit, const struct smalti_dit_shards *shards,
		      const struct smalti_strategy *strategy)
{
	if (shards->count != strategy->parts[SMALTI_AXIS_SHARD])
		return false;
	for (int i = 0; i < shards->count; i++) {
		const struct smalti_dit_shard wanted = extents_of(dit, strategy, i);
		if (shards->shard[i].first_head != wanted.first_head ||
		    shards->shard[i].first_column != wanted.first_column)
			return false;
	}
	return true;
}

static void free_shards(const struct smalti_dit *dit, struct smalti_dit_shards *shards)
{
	for (int i = 0; i < shards->count; i++)
		if (shards->shard[i].blocks != dit->blocks)
			free(shards->shard[i].blocks);
	free(shards);
}

static int cut_blocks(const struct smalti_dit *dit, struct smalti_dit_shard *shard,
		      struct smalti_error *error)
{
	shard->blocks = smalti_calloc(dit->config.layers, sizeof(*shard->blocks), error);
	if (!shard->blocks)
		return -1;
	for (int64_t i = 0; i < dit->config.layers; i++)
		cut_block(dit, &dit->blocks[i], shard, &shard->blocks[i]);
	return smalti_weights_status(dit->denoiser.weights, error);
}

static int fill(const struct smalti_dit *dit, const struct smalti_strategy *strategy,
		struct smalti_dit_shards *shards, struct smalti_error *error)
{
	shards->count = strategy->parts[SMALTI_AXIS_SHARD];
	if (shards->count > 1 && dit->adapted)
		return smalti_fail(
		    error, SMALTI_EUNSUPPORTED,
		    "heads cannot be cut for adapters that are not merged, as those of single requests, "
		    "in training, and beside weights in 8 bits or of the mapped file: cut tokens (patch, "
		    "ring)");
	if (shards->count > 1 && !dit->denoiser.weights->parameters &&
	    smalti_weight_is_raw(dit->blocks[0].ff_in.weight))
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "heads can only be cut where the memory limit holds the packed weights: "
				   "raise --memory-limit, or cut tokens (patch, ring)");
	for (int i = 0; i < shards->count; i++) {
		shards->shard[i] = extents_of(dit, strategy, i);
		if (shards->count == 1)
			shards->shard[i].blocks = dit->blocks;
		else if (cut_blocks(dit, &shards->shard[i], error) < 0)
			return -1;
	}
	return 0;
}

struct smalti_dit_shards *smalti_dit_shards_of(struct smalti_dit *dit, const struct smalti_strategy *strategy,
					       struct smalti_error *error)
{
	const int64_t bytes = strategy->parts[SMALTI_AXIS_SHARD] * (int64_t)sizeof(struct smalti_dit_shard);
	for (struct smalti_dit_shards *shards = dit->shards; shards; shards = shards->next)
		if (is_cut_so(dit, shards, strategy))
			return shards;
	struct smalti_dit_shards *shards = smalti_calloc(1, (int64_t)sizeof(*shards) + bytes, error);
	if (shards && fill(dit, strategy, shards, error) == 0) {
		shards->next = dit->shards;
		dit->shards = shards;
		return shards;
	}
	if (shards)
		free_shards(dit, shards);
	return NULL;
}

void smalti_dit_shards_free(struct smalti_dit *dit)
{
	for (struct smalti_dit_shards *shards = dit->shards, *next; shards; shards = next) {
		next = shards->next;
		free_shards(dit, shards);
	}
}
