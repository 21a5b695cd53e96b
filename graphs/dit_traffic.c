/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/dit_traffic.h"
#include "graphs/dit_count.h"

static int shards_of(const struct smalti_dit_count *c)
{
	return smalti_dit_count_parts(c, SMALTI_AXIS_SHARD);
}

static bool is_at(const struct smalti_dit_count *c, int64_t band, int shard)
{
	return smalti_dit_count_is_at(c, shard, c->tokens->band[band].rank);
}

static bool is_home(const struct smalti_dit_count *c, int64_t band)
{
	return is_at(c, band, c->tokens->band[band].shard);
}

static double heads_bytes(const struct smalti_dit_count *c, int64_t band, int shard)
{
	return smalti_dit_count_rows(c, band) * smalti_dit_count_of_shard(c, c->dit->config.heads, shard) *
	       (double)c->dit->config.head_dim * c->element;
}

/* Whether a band of a rank and shard that is here reads the other's keys. */
static bool reads_keys(const struct smalti_dit_count *c, int shard, int64_t other)
{
	for (int rank = 0; rank < c->strategy->parts[SMALTI_AXIS_RANK]; rank++)
		if ((c->strategy->exchange < SMALTI_EXCHANGE_MASKED || rank == c->tokens->band[other].rank) &&
		    smalti_dit_count_is_at(c, shard, rank))
			return true;
	return false;
}

/* Self-attention of one block. */
static void count_attention(struct smalti_dit_count *c)
{
	for (int64_t b = 0; b < c->tokens->partition.bands; b++)
		for (int shard = 0; shard < shards_of(c); shard++) {
			const bool made_here =
			    smalti_dit_count_is_tensor(c) ? is_at(c, b, shard) : is_home(c, b);
			const double bytes = heads_bytes(c, b, shard);
			if (!made_here && reads_keys(c, shard, b))
				c->load.traffic.keys += 2 * bytes;
			if (!smalti_dit_count_is_tensor(c) && is_at(c, b, shard) != is_home(c, b))
				c->load.traffic.heads += bytes; /* its queries come, or its result */
		}
}

/* A band's values pass through all shards once: they come to each that did not have them. */
static void count_sums(struct smalti_dit_count *c, bool attention, bool caption, bool mlp)
{
	const int shards = shards_of(c);
	for (int64_t b = 0; smalti_dit_count_is_tensor(c) && b < c->tokens->partition.bands; b++)
		for (int shard = 0; shard < shards; shard++) {
			const int home = c->tokens->band[b].shard;
			const double values = smalti_dit_count_rows(c, b) * (double)c->dit->config.width;
			const double sum = values * sizeof(float), input = values * c->element;
			if (!is_at(c, b, shard))
				continue;
			c->load.traffic.sums += (attention + mlp) * (sum + (shard == home ? 0 : input));
			/* the first of the caption's has what its queries were made of */
			c->load.traffic.sums += caption && shard != home ? sum : 0;
			c->load.traffic.sums += caption && shard != (home + 1) % shards ? sum : 0;
		}
}

static void count_block(struct smalti_dit_count *c, int64_t block, bool attends, int64_t prompt_tokens)
{
	const int64_t layers = c->dit->config.layers;
	c->stage = smalti_strategy_stage(c->strategy, layers, block);
	if (attends)
		count_attention(c);
	count_sums(c, attends, prompt_tokens > 1, true);
	if (block == 0 || smalti_strategy_stage(c->strategy, layers, block - 1) == c->stage)
		return;
	for (int64_t b = 0; b < c->tokens->partition.bands; b++) {
		const bool home = is_home(c, b);
		c->stage--;
		const bool was_home = is_home(c, b);
		c->stage++;
		if (home && !was_home)
			c->load.traffic.stream +=
			    smalti_dit_count_rows(c, b) * (double)c->dit->config.width * sizeof(float);
	}
}

/* The latents come to where a branch begins, its output to where the latents are. */
static void count_ends(struct smalti_dit_count *c)
{
	const struct smalti_denoiser *d = &c->dit->denoiser;
	const int64_t patch = d->patch_size * d->patch_size * (int64_t)sizeof(float);
	const int branch = c->branch, last = c->strategy->parts[SMALTI_AXIS_STAGE] - 1;
	for (int64_t b = 0; b < c->tokens->partition.bands; b++) {
		c->branch = c->stage = 0;
		const bool latents = is_home(c, b);
		c->branch = branch;
		const bool begins = is_home(c, b);
		c->stage = last;
		const bool ends = is_home(c, b);
		if (begins && !latents)
			c->load.traffic.stream +=
			    smalti_dit_count_rows(c, b) * (double)(d->in_channels * patch);
		if (latents && !ends)
			c->load.traffic.stream +=
			    smalti_dit_count_rows(c, b) * (double)(d->out_channels * patch);
	}
}

/* It is made at the first part. */
static void count_modulation(struct smalti_dit_count *c)
{
	const struct smalti_strategy *s = c->strategy;
	const double row = (double)c->dit->config.width * sizeof(float);
	const int parts = s->parts[0] * s->parts[1] * s->parts[2] * s->parts[3];
	bool used = false;
	for (int part = 0; part < parts && part < s->count; part++)
		used = used || s->place[part] == c->place;
	if (used && c->place != smalti_strategy_place(s, 0, 0, 0, 0))
		c->load.traffic.modulation = (double)(6 * c->dit->config.layers) * row;
	c->branch = 0;
	c->stage = s->parts[SMALTI_AXIS_STAGE] - 1;
	bool ends = false;
	for (int shard = 0; shard < shards_of(c); shard++)
		for (int rank = 0; rank < s->parts[SMALTI_AXIS_RANK]; rank++)
			for (int branch = 0; branch < s->parts[SMALTI_AXIS_BRANCH]; branch++)
				ends = ends ||
				       smalti_strategy_place(s, branch, c->stage, shard, rank) == c->place;
	if (ends && c->place != smalti_strategy_place(s, 0, 0, 0, 0))
		c->load.traffic.modulation += 2 * row;
}

struct smalti_traffic smalti_dit_traffic(const struct smalti_denoiser *denoiser,
					 const struct smalti_tokens *tokens, const int64_t *prompt_tokens,
					 int count, int place)
{
	const bool apart = tokens->strategy->parts[SMALTI_AXIS_BRANCH] > 1;
	struct smalti_dit_count c = smalti_dit_count_at(denoiser, tokens, place);
	count_modulation(&c);
	for (int k = 0; k < count; k++) {
		c.branch = k;
		for (int64_t block = 0; block < c.dit->config.layers; block++)
			count_block(&c, block, block > 0 || k == 0 || apart, prompt_tokens[k]);
		count_ends(&c);
	}
	return c.load.traffic;
}
