/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/t5/parts.h"
#include "ranks/ranks.h"

#include <math.h>

/* Cuts the captions, in their order, into the fewest bands that hold their tokens, as evenly as possible:
 * each goes where its middle lies. One with padding has its own. */
static int cut_into_bands(struct smalti_t5_encoding *e, struct smalti_error *error)
{
	int64_t all = 0, begin = 0;
	e->band = smalti_calloc(e->count, sizeof(*e->band), error);
	if (!e->band)
		return -1;
	for (int64_t i = 0; i < e->count; i++)
		all += e->texts[i].count;
	const int64_t max = e->t5->encoder.band_tokens, bands = (all + max - 1) / max;
	int64_t last = -1;
	for (int64_t i = 0; i < e->count; i++) {
		const int64_t tokens = e->texts[i].count, padding = e->texts[i].padding;
		const int64_t wanted = (2 * begin + tokens) * bands / (2 * all);
		if (wanted != last || padding)
			e->band[e->bands++].first = i;
		last = padding ? -1 : wanted;
		begin += tokens;
		struct smalti_t5_band *band = &e->band[e->bands - 1];
		band->end = i + 1;
		band->tokens += tokens;
		band->pairs += tokens * (tokens - padding);
		band->padding = padding;
	}
	return 0;
}

static int upload(const struct smalti_t5_encoding *e, struct smalti_t5_band *band, struct smalti_error *error)
{
	const int64_t captions = band->end - band->first;
	SCOPED(free) int32_t *ids = smalti_calloc(band->tokens, sizeof(*ids), error);
	SCOPED(free) int64_t *starts = smalti_calloc(captions + 1, sizeof(*starts), error);
	if (!ids || !starts)
		return -1;
	for (int64_t i = 0; i < captions; i++) {
		const struct smalti_token_ids *words = &e->texts[band->first + i];
		memcpy(ids + starts[i], words->ids, (size_t)words->count * sizeof(*ids));
		starts[i + 1] = starts[i] + words->count;
	}
	band->ids = smalti_tile_upload(e->task_group, band->tokens, sizeof(*ids), ids);
	if (captions > 1)
		band->starts = smalti_tile_upload(e->task_group, captions + 1, sizeof(*starts), starts);
	return 0;
}

/* Returns a band's flops in a layer; infinity if workers share a caption, or weights are streamed. */
static double band_flops(const struct smalti_t5_encoding *e)
{
	int64_t max = 0;
	for (int64_t j = 0; j < e->bands; j++)
		max = smalti_max(max, e->band[j].tokens);
	const bool whole = e->t5->shards == 1 && !e->t5->streamed;
	return whole ? (double)max * e->t5->encoder.token_flops / (double)e->t5->config.layers
		     : (double)INFINITY;
}

int smalti_t5_make_bands(struct smalti_t5_encoding *e, struct smalti_error *error)
{
	int status = cut_into_bands(e, error);
	for (int64_t j = 0; status == 0 && j < e->bands; j++)
		status = upload(e, &e->band[j], error);
	e->flops = band_flops(e);
	return status;
}

/* Makes the biases of these captions' distances, and keeps them for later ones. */
void smalti_t5_reach(const struct smalti_t5_encoding *e)
{
	enum { LEAST = 128 };
	struct smalti_t5 *t5 = e->t5;
	const struct smalti_t5_config *c = &t5->config;
	int64_t reach = LEAST;
	for (int64_t i = 0; i < e->count; i++)
		while (reach < e->texts[i].count)
			reach *= 2;
	if (t5->bias && reach <= t5->reach)
		return;
	smalti_tile_release(t5->bias);
	t5->reach = reach;
	t5->bias = smalti_tile_new(t5->task_group, c->heads, (2 * reach - 1) * (int64_t)sizeof(float));
	smalti_insert(relative_bias, t5->task_group,
		      (.table = smalti_weight_tile(t5->relative_bias), .bias = t5->bias), .heads = c->heads,
		      .buckets = c->buckets, .max_distance = c->max_distance, .reach = reach);
}

/* Goes to the first shard's place over ranks, which alone has the table; else to main memory, as few of its
 * rows are read. */
static void go_to_table(const struct smalti_t5_encoding *e)
{
	if (e->placed && smalti_ranks_count() == 1)
		smalti_task_group_place(e->task_group, 0);
	else
		smalti_t5_go_to(e, 0);
}

static void embed_band(const struct smalti_t5_encoding *e, struct smalti_t5_band *band)
{
	const struct smalti_t5 *t5 = e->t5;
	const struct smalti_t5_config *c = &t5->config;
	go_to_table(e);
	for (int shard = 0; shard < t5->shards; shard++) {
		const int64_t columns = smalti_t5_shard_size(t5, c->width, shard);
		band->x[shard] = smalti_t5_new_shard(e, band, columns, SMALTI_F32);
		if (band->x[shard])
			band->x[shard]->owner = e->place[shard];
		smalti_insert(embed_tokens, e->task_group,
			      (.ids = band->ids, .table = smalti_weight_tile(t5->embedding.weight),
			       .y = band->x[shard]),
			      .tokens = band->tokens, .dim = c->width, .vocabulary = c->vocabulary,
			      .first = smalti_t5_shard_begin(t5, c->width, shard), .columns = columns,
			      .dtype = t5->embedding.dtype);
	}
}

void smalti_t5_embed(const struct smalti_t5_encoding *e)
{
	for (int64_t j = 0; j < e->bands; j++)
		embed_band(e, &e->band[j]);
}
