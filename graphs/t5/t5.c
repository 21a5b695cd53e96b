/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/t5/parts.h"
#include "ranks/ranks.h"
#include "rt/devices_alone.h"

/* About so many tokens of captions are computed together. A device that does everything takes more, since
 * products reach their speed with more rows. */
enum { BAND_TOKENS = 512, ALONE_TOKENS = 4096 };

/* The workers share a caption by shards of the layers' outputs: heads of the attention, columns of the rest.
 * How many there are depends on the geometry alone, so that the order of all sums does; a device that does
 * everything has one shard. */
enum { SHARD_WEIGHTS = 1 << 18 }; /* wanted at least in a shard of the feed-forward's matrix */

static int count_shards(const struct smalti_t5_config *c)
{
	const int64_t wanted = c->width * c->ff_width / SHARD_WEIGHTS;
	const int64_t max = smalti_min(smalti_min(c->heads, c->ff_width), smalti_min(c->width, SMALTI_MANY));
	return (int)smalti_max(smalti_min(wanted, max), 1);
}

/* Gives devices equal parts, if CPUs have none: their time for a caption is the weights' transfer, not
 * arithmetic. */
static void level(double *shares, int places)
{
	if (shares[0] > 0) /* CPUs compute, too */
		return;
	for (int place = 1; place < places; place++)
		shares[place] = shares[place] > 0;
}

/* Gives each place neighbouring shards. */
static int distribute(struct smalti_t5_encoding *e, const struct smalti_strategy *strategy,
		      struct smalti_error *error)
{
	struct smalti_partition shards;
	int places = 0;
	for (int i = 0; i < strategy->count; i++)
		places = (int)smalti_max(places, strategy->place[i] + 1);
	SCOPED(free) double *shares = smalti_calloc(places, sizeof(*shares), error);
	if (!shares || smalti_partition_even(&shards, e->t5->shards, 1, error) < 0)
		return -1;
	smalti_strategy_shares(strategy, shares, places);
	if (smalti_ranks_count() == 1)
		level(shares, places);
	const int status = smalti_partition_distribute(&shards, shares, places, error);
	for (int shard = 0; shard < e->t5->shards && status == 0; shard++)
		e->place[shard] = shards.owner[shard];
	smalti_partition_free(&shards);
	return status;
}

/* Leaves an encoder of one shard, which is small, to the policy, or over ranks to the first one. */
static int place_shards(struct smalti_t5_encoding *e, const struct smalti_strategy *strategy,
			struct smalti_error *error)
{
	for (int shard = 0; shard < e->t5->shards; shard++)
		e->place[shard] = SMALTI_ANYWHERE;
	e->placed = strategy->count > 0 && e->t5->shards > 1;
	if (!e->placed)
		return 0;
	return smalti_t5_cut_weights(e->t5, error) < 0 ? -1 : distribute(e, strategy, error);
}

static void encode(struct smalti_text_encoder *encoder, struct smalti_task_group *task_group,
		   const struct smalti_token_ids *texts, int64_t count,
		   const struct smalti_strategy *strategy, struct smalti_tile **hidden)
{
	struct smalti_t5 *t5 = (struct smalti_t5 *)encoder;
	struct smalti_t5_encoding e = {.t5 = t5, .task_group = task_group, .texts = texts, .count = count};
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int64_t i = 0; i < count; i++)
		hidden[i] = NULL;
	int status = place_shards(&e, strategy, &error);
	if (status == 0)
		status = smalti_t5_make_bands(&e, &error);
	if (status < 0)
		smalti_task_group_break(task_group, &error);
	smalti_t5_reach(&e);
	smalti_t5_embed(&e);
	if (t5->streamed)
		smalti_weight_drop(task_group, t5->embedding.weight);
	smalti_t5_run_layers(&e);
	smalti_t5_finish(&e, hidden);
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
	free(e.band);
}

static void free_t5(struct smalti_text_encoder *encoder)
{
	struct smalti_t5 *t5 = (struct smalti_t5 *)encoder;
	smalti_tile_release(t5->bias);
	smalti_weights_free(encoder->weights);
	free(t5->blocks);
	free(t5);
}

static int64_t mapped_bytes(const struct smalti_text_encoder *encoder)
{
	enum { LAYERS_AT_A_TIME = 3 }; /* the one computed, the one dropped, the one read ahead */
	const struct smalti_t5 *t5 = (const struct smalti_t5 *)encoder;
	const int64_t all = smalti_weights_read_bytes(encoder->weights);
	if (!t5->streamed || t5->config.layers <= LAYERS_AT_A_TIME)
		return all - smalti_weights_bytes(encoder->weights);
	return all / t5->config.layers * LAYERS_AT_A_TIME;
}

/* Counts the residual stream and its norm, q, k, v and o, the feed-forward's hidden values, and all
 * results. */
static int64_t working_bytes(const struct smalti_text_encoder *encoder, int64_t tokens)
{
	const struct smalti_t5_config *c = &((const struct smalti_t5 *)encoder)->config;
	return tokens * (4 * c->width + 4 * c->inner + c->ff_width) * (int64_t)sizeof(float);
}

static void stream(struct smalti_text_encoder *encoder)
{
	((struct smalti_t5 *)encoder)->streamed = true;
	encoder->weights->transient = true;
}

static const struct smalti_text_encoder_functions functions = {
    .free = free_t5,
    .working_bytes = working_bytes,
    .mapped_bytes = mapped_bytes,
    .stream = stream,
    .encode = encode,
};

/* Returns the bytes of the weights of the task that reads the most of them. */
static int64_t task_weights(const struct smalti_t5 *t5)
{
	const struct smalti_t5_matrix *m = t5->blocks[0].matrix, *e = &t5->embedding;
	const struct smalti_weight *const read[][3] = {
	    {e->weight},
	    {m[SMALTI_T5_Q].weight, m[SMALTI_T5_K].weight, m[SMALTI_T5_V].weight},
	    {m[SMALTI_T5_WI_0].weight, m[SMALTI_T5_WI_1].weight},
	};
	int64_t max = 0;
	for (size_t task = 0; task < COUNT_OF(read); task++) {
		int64_t bytes = 0;
		for (int i = 0; i < 3 && read[task][i]; i++)
			bytes += smalti_weight_device_bytes(read[task][i]);
		max = smalti_max(max, bytes);
	}
	return max;
}

struct smalti_text_encoder *smalti_t5_new(struct smalti_task_group *task_group,
					  const struct smalti_t5_config *config,
					  const struct smalti_checkpoint *checkpoint,
					  enum smalti_dtype compute, struct smalti_error *error)
{
	const struct smalti_t5_config *c = config;
	struct smalti_t5 *t5 = smalti_calloc(1, sizeof(*t5), error);
	if (!t5)
		return NULL;
	const bool alone = task_group && smalti_devices_alone_place(task_group->session) != SMALTI_ANYWHERE;
	t5->encoder = (struct smalti_text_encoder){
	    .functions = &functions,
	    .width = c->width,
	    .vocabulary = c->vocabulary,
	    .token_flops = 2.0 * (double)(c->layers * c->width * (4 * c->inner + 3 * c->ff_width)),
	    .band_tokens = alone ? ALONE_TOKENS : BAND_TOKENS,
	};
	t5->config = *config;
	t5->compute = compute;
	t5->wide = compute == SMALTI_F16 ? SMALTI_F32 : compute; /* docs/reference.md 2.2 */
	t5->shards = alone ? 1 : count_shards(config);
	t5->rounds_x = checkpoint->wants_w8a8;
	t5->task_group = task_group;
	t5->blocks = smalti_calloc(config->layers, sizeof(*t5->blocks), error);
	t5->encoder.weights = smalti_weights_new(task_group, checkpoint, compute, error);
	if (t5->blocks && t5->encoder.weights) {
		smalti_t5_load(t5);
		if (smalti_weights_status(t5->encoder.weights, error) == 0) {
			t5->encoder.task_weights = task_weights(t5);
			return &t5->encoder;
		}
	}
	free_t5(&t5->encoder);
	return NULL;
}
