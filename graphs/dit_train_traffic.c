/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/dit_train_traffic.h"

/* A count under way. */
struct count {
	const struct smalti_transformer_config *config;
	const struct smalti_dit_sample *sample;
	int place;
};

static const struct smalti_strategy *strategy_of(const struct count *c)
{
	return c->sample->tokens->strategy;
}

static bool is_here(const struct count *c, int rank, int shard)
{
	return smalti_strategy_place(strategy_of(c), c->sample->replica, 0, shard, rank) == c->place;
}

/* Parts that are at this place, or with `here` false at others. */
static int parts_at(const struct count *c, bool here)
{
	int count = 0;
	for (int rank = 0; rank < strategy_of(c)->parts[SMALTI_AXIS_RANK]; rank++)
		for (int shard = 0; shard < strategy_of(c)->parts[SMALTI_AXIS_SHARD]; shard++)
			count += is_here(c, rank, shard) == here;
	return count;
}

/* Elements of a band's stream. */
static double elements_of(const struct count *c, int64_t band)
{
	const int64_t rows = smalti_partition_rows(&c->sample->tokens->partition, band);
	return (double)rows * (double)c->config->width;
}

/* Elements of the stream of the tokens that are at home here, or elsewhere. */
static double stream_of(const struct count *c, bool here)
{
	const struct smalti_tokens *tokens = c->sample->tokens;
	double elements = 0;
	for (int64_t band = 0; band < tokens->partition.bands; band++)
		if (is_here(c, tokens->band[band].rank, tokens->band[band].shard) == here)
			elements += elements_of(c, band);
	return elements;
}

/* Elements of a sum that the shards add to one behind the other, as far as it comes here. */
static double sums_of(const struct count *c)
{
	const struct smalti_tokens *tokens = c->sample->tokens;
	const int shards = strategy_of(c)->parts[SMALTI_AXIS_SHARD];
	double elements = 0;
	for (int64_t band = 0; band < tokens->partition.bands; band++)
		for (int i = 1; i < shards; i++) {
			const struct smalti_token_band *b = &tokens->band[band];
			const int shard = (b->shard + 1 + i) % shards, before = (b->shard + i) % shards;
			if (is_here(c, b->rank, shard) && !is_here(c, b->rank, before))
				elements += elements_of(c, band);
		}
	return elements;
}

/* Three sums and as many inputs on either way; the backward makes those of norms again, and what it needs of
 * cross-attention is still there. */
static double shards_of(const struct count *c, double element, double layers, double passes)
{
	const double other = stream_of(c, false), sums = sizeof(float) * sums_of(c);
	const double forward = other * (2 * element + sizeof(float)) + 3 * sums;
	const double backward = other * (2 * element + 3 * sizeof(float)) + 3 * sums;
	return passes * forward + layers * backward;
}

/* e, g and the caption in the model's width, or their gradients. */
static double conditions_of(const struct count *c)
{
	return sizeof(float) * (double)(7 + c->sample->text_tokens) * (double)c->config->width;
}

static double positions_of(const struct count *c)
{
	const int64_t patch = c->config->patch_size;
	const int64_t places = c->sample->height / patch + c->sample->width / patch;
	const int64_t frequencies = c->config->width / 2;
	return sizeof(float) * (double)places * (double)frequencies;
}

static double caption_of(const struct count *c)
{
	return sizeof(float) * (double)c->sample->text_tokens * (double)c->config->caption_channels;
}

static double planes_of(const struct count *c, int64_t channels)
{
	return sizeof(float) * (double)channels * (double)c->sample->height * (double)c->sample->width;
}

/* The result's patches of tokens elsewhere. */
static double patches_of(const struct count *c)
{
	const double area = (double)(c->config->patch_size * c->config->patch_size);
	return sizeof(float) * stream_of(c, false) / (double)c->config->width * area *
	       (double)c->config->out_channels;
}

struct smalti_train_traffic smalti_dit_train_traffic(const struct smalti_transformer_config *config,
						     enum smalti_dtype compute,
						     const struct smalti_dit_sample *sample, int place)
{
	const struct count c = {config, sample, place};
	const enum smalti_dtype keys = compute == SMALTI_F16 ? SMALTI_F32 : compute;
	const double layers = (double)config->layers, passes = layers + (double)sample->recomputed;
	struct smalti_train_traffic traffic = {0};
	if (parts_at(&c, true) == 0)
		return traffic;
	if (strategy_of(&c)->parts[SMALTI_AXIS_SHARD] > 1) {
		traffic.shards = shards_of(&c, (double)smalti_dtype_bytes(compute), layers, passes);
	} else {
		traffic.keys = 2 * passes * stream_of(&c, false) * (double)smalti_dtype_bytes(keys);
		traffic.gradients = 2 * layers * stream_of(&c, true) * sizeof(float) * parts_at(&c, false);
	}
	traffic.planes = planes_of(&c, config->in_channels) + planes_of(&c, config->out_channels);
	if (is_here(&c, 0, 0)) {
		traffic.conditions = caption_of(&c) + parts_at(&c, false) * conditions_of(&c);
		traffic.planes += patches_of(&c);
	} else {
		traffic.conditions = conditions_of(&c) + positions_of(&c);
	}
	return traffic;
}
