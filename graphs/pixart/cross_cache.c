/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/pixart/cross_cache.h"
#include "graphs/linear.h"

int64_t smalti_dit_cross_cache_bytes(const struct smalti_denoiser *denoiser, int64_t tokens)
{
	const struct smalti_dit *dit = (const struct smalti_dit *)denoiser;
	const int64_t row = dit->config.width * (int64_t)sizeof(float);
	return tokens * (2 * dit->config.layers + 3) * row;
}

/* Makes a single token's row; the query does not matter. */
static struct smalti_tile *constant_row(const struct smalti_dit *dit, struct smalti_task_group *task_group,
					int64_t i, struct smalti_tile *kv)
{
	const struct smalti_heads heads = {dit->config.heads, dit->config.head_dim, dit->compute};
	const struct smalti_key_bands keys = {1, &kv, &(int64_t){1}, NULL};
	struct smalti_tile *value = smalti_attend(task_group, &heads, 1, kv, &keys);
	struct smalti_tile *row = smalti_linear(task_group, &dit->blocks[i].cross.out, 1, dit->compute, value,
						SMALTI_EPILOGUE_NONE, SMALTI_F32);
	smalti_tile_release(value);
	smalti_tile_release(kv);
	return row;
}

struct smalti_cross_cache *smalti_dit_cross_cache(struct smalti_denoiser *denoiser,
						  struct smalti_task_group *task_group,
						  struct smalti_tile *text, int64_t tokens)
{
	struct smalti_dit *dit = (struct smalti_dit *)denoiser;
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_transformer_config *c = &dit->config;
	struct smalti_cross_cache *cache = smalti_calloc(
	    1, (int64_t)sizeof(*cache) + c->layers * (int64_t)sizeof(struct smalti_tile *), &error);
	if (!cache) {
		smalti_task_group_break(task_group, &error);
		return NULL;
	}
	cache->tokens = tokens;
	cache->layers = c->layers;
	struct smalti_tile *projected = text;
	if (c->caption_channels) {
		struct smalti_tile *hidden =
		    smalti_linear(task_group, &dit->caption.linear_1, tokens, SMALTI_F32, text,
				  SMALTI_EPILOGUE_GELU, dit->compute);
		projected = smalti_linear(task_group, &dit->caption.linear_2, tokens, dit->compute, hidden,
					  SMALTI_EPILOGUE_NONE, SMALTI_F32);
		smalti_tile_release(hidden);
	}
	for (int64_t i = 0; i < c->layers; i++) {
		struct smalti_tile *kv =
		    smalti_linear(task_group, &dit->blocks[i].cross.kv, tokens, SMALTI_F32, projected,
				  SMALTI_EPILOGUE_NONE, dit->compute);
		cache->block[i] = tokens == 1 ? constant_row(dit, task_group, i, kv) : kv;
	}
	if (projected != text)
		smalti_tile_release(projected);
	return cache;
}

void smalti_dit_release_cross_cache(struct smalti_cross_cache *cache)
{
	if (!cache)
		return;
	for (int64_t i = 0; i < cache->layers; i++)
		smalti_tile_release(cache->block[i]);
	free(cache);
}

struct smalti_tile *smalti_dit_caption_shard(const struct smalti_dit_forward *f,
					     struct smalti_dit_position at,
					     const struct smalti_cross_cache *cache, int shard)
{
	const struct smalti_dit_shard *s = &f->shards->shard[shard];
	const int64_t dim = f->dit->config.head_dim, layers = f->dit->config.layers;
	const int64_t size = smalti_dtype_bytes(f->dit->compute);
	struct smalti_tile **tile =
	    &f->conditions->captions[(at.branch * layers + at.block) * f->shards->count + shard];
	if (*tile)
		return *tile;
	*tile = smalti_tile_new(f->task_group, cache->tokens, 2 * s->heads * dim * size);
	smalti_insert(take_columns, f->task_group, (.x = cache->block[at.block], .y = *tile),
		      .rows = cache->tokens, .parts = 2, .in = f->dit->config.width * size,
		      .first = s->first_head * dim * size, .columns = s->heads * dim * size);
	return *tile;
}
