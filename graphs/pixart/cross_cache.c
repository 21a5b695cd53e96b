/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/cross_cache.h"

int64_t smalti_dit_cross_cache_bytes(const struct smalti_denoiser *denoiser, int64_t tokens)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	const int64_t row = dit->config.width * (int64_t)sizeof(float);
	return tokens * (2 * dit->config.layers + 3) * row;
}

/* Makes a single token's row; the query does not matter. */
static struct smalti_value constant_row(struct smalti_tape *tape, const struct smalti_dit *dit, int64_t i,
					struct smalti_value kv)
{
	const struct smalti_heads heads = {dit->config.heads, dit->config.head_dim, dit->compute};
	const struct smalti_key_bands keys = {1, &kv, NULL};
	struct smalti_value value = smalti_layer_attend(tape, &heads, kv, &keys);
	const struct smalti_value row =
	    smalti_layer_linear(tape, &dit->blocks[i].cross.out, value, SMALTI_F32);
	smalti_value_release(tape, &value);
	smalti_value_release(tape, &kv);
	return row;
}

struct smalti_cross_cache *smalti_dit_cross_cache(struct smalti_denoiser *denoiser,
						  struct smalti_task_group *task_group,
						  struct smalti_tile *text, int64_t tokens)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	struct smalti_tape tape = {.task_group = task_group};
	const int64_t layers = dit->config.layers;
	struct smalti_cross_cache *cache = smalti_task_group_calloc(
	    task_group, 1, (int64_t)sizeof(*cache) + layers * (int64_t)sizeof(*cache->block));
	if (!cache)
		return NULL;
	cache->tokens = tokens;
	cache->layers = layers;
	struct smalti_value caption = smalti_dit_caption(
	    &tape, dit, (struct smalti_value){text, tokens, denoiser->text_width, SMALTI_F32, 0});
	for (int64_t i = 0; i < layers; i++) {
		const struct smalti_value kv =
		    smalti_layer_linear(&tape, &dit->blocks[i].cross.kv, caption, dit->compute);
		cache->block[i] = tokens == 1 ? constant_row(&tape, dit, i, kv) : kv;
	}
	if (caption.tile != text)
		smalti_value_release(&tape, &caption);
	return cache;
}

void smalti_dit_release_cross_cache(struct smalti_cross_cache *cache)
{
	if (!cache)
		return;
	for (int64_t i = 0; i < cache->layers; i++)
		smalti_tile_release(cache->block[i].tile);
	free(cache);
}

struct smalti_value smalti_dit_caption_shard(const struct smalti_dit_forward *f,
					     struct smalti_dit_position at,
					     const struct smalti_cross_cache *cache, int shard)
{
	const struct smalti_dit_shard *s = &f->shards->shard[shard];
	const int64_t dim = f->dit->config.head_dim, layers = f->dit->config.layers;
	const int64_t size = smalti_dtype_bytes(f->dit->compute);
	struct smalti_value *kv =
	    &f->conditions->captions[(at.branch * layers + at.block) * f->shards->count + shard];
	if (kv->tile)
		return *kv;
	*kv = smalti_value_new(f->tape, cache->tokens, 2 * s->heads * dim, f->dit->compute);
	smalti_insert(slice_columns, f->task_group, (.x = cache->block[at.block].tile, .y = kv->tile),
		      .rows = cache->tokens, .parts = 2, .in = f->dit->config.width * size,
		      .first = s->first_head * dim * size, .columns = s->heads * dim * size);
	return *kv;
}
