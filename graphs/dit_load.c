/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/dit_load.h"
#include "graphs/dit_count.h"
#include "graphs/dit_traffic.h"
#include "kernels/conditioning.h"

#include <math.h>

enum { MLP_RATIO = 4, BLOCK_BIASES = 11 };

static double width_of(const struct smalti_dit_count *c)
{
	return (double)c->dit->config.width;
}

/* Of `all` heads or columns, the share that a shard has. */
static double share_of(const struct smalti_dit_count *c, int64_t all, int shard)
{
	return smalti_dit_count_of_shard(c, all, shard) / (double)all;
}

/* The tokens that those of a rank attend to. */
static double keys_of(const struct smalti_dit_count *c, int rank)
{
	double keys = 0;
	for (int64_t b = 0; b < c->tokens->partition.bands; b++)
		if (c->strategy->exchange < SMALTI_EXCHANGE_MASKED || c->tokens->band[b].rank == rank)
			keys += smalti_dit_count_rows(c, b);
	return keys;
}

static double own_keys_of(const struct smalti_dit_count *c, int rank)
{
	double keys = 0;
	for (int64_t b = 0; b < c->tokens->partition.bands; b++)
		keys += c->tokens->band[b].rank == rank ? smalti_dit_count_rows(c, b) : 0;
	return keys;
}

/* What a shard of a band takes in `blocks` blocks, of which so many attend to themselves. */
static void count_band(struct smalti_dit_count *c, int64_t band, int shard, double blocks, double attending,
		       int64_t prompt_tokens)
{
	const double n = smalti_dit_count_rows(c, band), width = width_of(c);
	const int rank = c->tokens->band[band].rank;
	const bool home = shard == c->tokens->band[band].shard;
	const double heads = share_of(c, c->dit->config.heads, shard);
	const double columns = share_of(c, MLP_RATIO * c->dit->config.width, shard);
	const double of_heads = smalti_dit_count_is_tensor(c) ? heads : home,
		     of_columns = smalti_dit_count_is_tensor(c) ? columns : home;
	const double keys = keys_of(c, rank), attention = 4 * n * width * heads;
	const double cross = prompt_tokens > 1 ? 4 * n * width * (width + (double)prompt_tokens) : n * width;
	c->load.flops += attending * (8 * n * width * width * of_heads + attention * keys) +
			 blocks * (cross * of_heads + 16 * n * width * width * of_columns);
	c->load.attention += attending * attention * (keys - own_keys_of(c, rank));
	enum { HOME = 2, ATTENTION = 2, WITH_WEIGHTS = 7 };
	const double pieces = ceil(n / c->rows);
	const double ring =
	    c->strategy->exchange == SMALTI_EXCHANGE_RING ? c->strategy->parts[SMALTI_AXIS_RANK] - 1 : 0;
	c->load.operations +=
	    pieces * (blocks * (home * HOME + (smalti_dit_count_is_tensor(c) || home) * WITH_WEIGHTS) +
		      attending * (ATTENTION + ring));
	c->load.activations += home * n * width * sizeof(float) + 3 * n * width * heads * c->element;
}

/* How many blocks a stage has, and in `attending`, how many attend to themselves in a branch: the first one
 * does once for all branches in one place. */
static double blocks_of(const struct smalti_dit_count *c, double *attending)
{
	const enum smalti_axis axis = SMALTI_AXIS_STAGE;
	const int64_t layers = c->dit->config.layers;
	const double blocks = (double)(smalti_strategy_begin(c->strategy, axis, layers, c->stage + 1) -
				       smalti_strategy_begin(c->strategy, axis, layers, c->stage));
	const bool shared = c->branch > 0 && c->strategy->parts[SMALTI_AXIS_BRANCH] == 1;
	*attending = shared && c->stage == 0 && blocks > 0 ? blocks - 1 : blocks;
	return blocks;
}

static void count_branch(struct smalti_dit_count *c, int64_t prompt_tokens)
{
	double attending;
	const double blocks = blocks_of(c, &attending);
	bool here = false;
	for (int64_t b = 0; b < c->tokens->partition.bands; b++)
		for (int shard = 0; shard < c->strategy->parts[SMALTI_AXIS_SHARD]; shard++)
			if (smalti_dit_count_is_at(c, shard, c->tokens->band[b].rank)) {
				count_band(c, b, shard, blocks, attending, prompt_tokens);
				here = true;
			}
	c->load.blocks += here ? blocks : 0;
}

/* Whether a shard has tokens here in a stage, or (home) is their home, in any branch. */
static bool is_used(struct smalti_dit_count *c, int shard, bool home)
{
	for (c->branch = 0; c->branch < c->strategy->parts[SMALTI_AXIS_BRANCH]; c->branch++)
		for (int64_t b = 0; b < c->tokens->partition.bands; b++)
			if (smalti_dit_count_is_at(c, shard, c->tokens->band[b].rank) &&
			    (!home || c->tokens->band[b].shard == shard))
				return true;
	return false;
}

static bool is_anyones_home(struct smalti_dit_count *c)
{
	bool home = false;
	for (int shard = 0; shard < c->strategy->parts[SMALTI_AXIS_SHARD]; shard++)
		home = home || is_used(c, shard, true);
	return home;
}

/* Matrices, but for those of the caption's keys, which are multiplied with once per prompt; biases. */
static double block_bytes(const struct smalti_dit_count *c, double heads, double columns)
{
	const double width = width_of(c);
	return width * width * c->element * (6 * heads + 2 * MLP_RATIO * columns) +
	       width * sizeof(float) * BLOCK_BIASES * heads;
}

static void count_blocks(struct smalti_dit_count *c)
{
	double attending;
	const double blocks = blocks_of(c, &attending);
	if (!smalti_dit_count_is_tensor(c)) {
		c->load.weights += is_anyones_home(c) ? blocks * block_bytes(c, 1, 1) : 0;
		return;
	}
	for (int shard = 0; shard < c->strategy->parts[SMALTI_AXIS_SHARD]; shard++)
		if (is_used(c, shard, false))
			c->load.weights +=
			    blocks * block_bytes(c, share_of(c, c->dit->config.heads, shard),
						 share_of(c, MLP_RATIO * c->dit->config.width, shard));
}

/* What comes before the first block and behind the last one, and at the first part the modulation. */
static void count_ends(struct smalti_dit_count *c)
{
	const struct smalti_denoiser *d = &c->dit->denoiser;
	const double width = width_of(c), patch = (double)(d->patch_size * d->patch_size);
	const double in = patch * (double)d->in_channels, out = patch * (double)d->out_channels;
	if (c->stage == 0 && is_anyones_home(c))
		c->load.weights += width * (in + 1) * sizeof(float);
	if (c->stage == c->strategy->parts[SMALTI_AXIS_STAGE] - 1 && is_anyones_home(c))
		c->load.weights += out * (width * c->element + sizeof(float)) + 2 * width * sizeof(float);
	const double embedding = width * (SMALTI_SINUSOID_SIZE + width), modulation = 6 * width * width;
	const double tables = 6 * width * (double)c->dit->config.layers;
	if (c->stage == 0 && c->place == smalti_strategy_place(c->strategy, 0, 0, 0, 0))
		c->load.weights += (embedding + modulation + tables) * sizeof(float);
}

/* What shards that have a part of the weights hold of bands at home elsewhere: their modulated input, and the
 * sum that passes through. */
static double foreign_bytes(struct smalti_dit_count *c, int branches)
{
	double rows = 0;
	for (c->branch = 0; smalti_dit_count_is_tensor(c) && c->branch < branches; c->branch++)
		for (int64_t b = 0; b < c->tokens->partition.bands; b++)
			for (int shard = 0; shard < c->strategy->parts[SMALTI_AXIS_SHARD]; shard++)
				if (c->tokens->band[b].shard != shard &&
				    smalti_dit_count_is_at(c, shard, c->tokens->band[b].rank))
					rows += smalti_dit_count_rows(c, b);
	return rows * width_of(c) * (c->element + (double)sizeof(float));
}

/* Others' keys of a block of each branch, what the strategy keeps of all blocks, and bands from elsewhere. */
static void count_buffers(struct smalti_dit_count *c, int branches)
{
	const struct smalti_strategy *s = c->strategy;
	const double blocks = (double)c->dit->config.layers;
	double attending, held = 0;
	c->load.buffers = c->load.traffic.keys / blocks;
	for (c->stage = 0; smalti_strategy_keeps(s) && c->stage < s->parts[SMALTI_AXIS_STAGE]; c->stage++)
		for (c->branch = 0; c->branch < branches; c->branch++)
			for (int rank = 0; rank < s->parts[SMALTI_AXIS_RANK]; rank++)
				for (int shard = 0; shard < s->parts[SMALTI_AXIS_SHARD]; shard++)
					if (smalti_dit_count_is_at(c, shard, rank))
						held += blocks_of(c, &attending) * keys_of(c, rank) *
							share_of(c, c->dit->config.heads, shard);
	c->load.buffers += 2 * width_of(c) * c->element * held;
	for (c->stage = 0; c->stage < s->parts[SMALTI_AXIS_STAGE]; c->stage++)
		c->load.buffers += foreign_bytes(c, branches);
}

struct smalti_load smalti_dit_load_of(const struct smalti_denoiser *denoiser,
				      const struct smalti_tokens *tokens, const int64_t *prompt_tokens,
				      int count, int64_t band_tokens, int place)
{
	const struct smalti_strategy *strategy = tokens->strategy;
	enum { ROWS_IN_WORK = 2, VALUES_OF_ROW = 8 };
	struct smalti_dit_count c = smalti_dit_count_at(denoiser, tokens, place);
	c.rows = (double)band_tokens;
	c.load.traffic = smalti_dit_traffic(denoiser, tokens, prompt_tokens, count, place);
	for (c.stage = 0; c.stage < strategy->parts[SMALTI_AXIS_STAGE]; c.stage++) {
		for (c.branch = 0; c.branch < count; c.branch++)
			count_branch(&c, prompt_tokens[c.branch]);
		count_blocks(&c);
		count_ends(&c);
	}
	if (c.load.flops > 0)
		c.load.activations +=
		    ROWS_IN_WORK * count * c.rows * VALUES_OF_ROW * width_of(&c) * sizeof(float);
	count_buffers(&c, count);
	return c.load;
}
