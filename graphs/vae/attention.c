/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/attention.h"
#include "graphs/linear.h"
#include "graphs/vae/pass.h"

/* Queries, and keys with values, of each band. */
struct projections {
	struct smalti_tile **q, **kv;
	int64_t *pixels;
};

static void project(const struct smalti_vae_net *layers, const struct smalti_vae_layer *layer,
		    struct smalti_task_group *task_group, struct smalti_feature_map *x, int64_t band,
		    struct projections *to)
{
	const enum smalti_dtype dtype = layers->compute;
	const int64_t pixels = smalti_feature_map_pixels(x, band);
	struct smalti_tile *h = smalti_tile_new(task_group, pixels, x->channels * smalti_dtype_bytes(dtype));
	smalti_insert(groupnorm, task_group,
		      (.x = smalti_feature_map_body(task_group, x, band), .moments = x->moments,
		       .gamma = smalti_weight_tile(layer->norm.gamma),
		       .beta = smalti_weight_tile(layer->norm.beta), .y = h),
		      .pixels = pixels, .channels = x->channels, .groups = layers->config.norm_groups,
		      .epsilon = SMALTI_VAE_EPSILON, .dtype = dtype);
	to->q[band] = smalti_linear(task_group, &layer->q, pixels, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
	to->kv[band] = smalti_linear(task_group, &layer->kv, pixels, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
	smalti_tile_moves_as(to->kv[band], SMALTI_MOVE_KEYS);
	to->pixels[band] = pixels;
	smalti_tile_release(h);
}

static void attend(const struct smalti_vae_net *layers, const struct smalti_vae_layer *layer,
		   struct smalti_task_group *task_group, struct smalti_feature_map *x, int64_t band,
		   struct projections *from)
{
	const struct smalti_heads heads = {1, x->channels, layers->compute};
	const int64_t pixels = smalti_feature_map_pixels(x, band);
	const struct smalti_key_bands keys = {x->partition.bands, from->kv, from->pixels, NULL};
	struct smalti_tile *o = smalti_attend(task_group, &heads, pixels, from->q[band], &keys);
	smalti_tile_release(from->q[band]);
	from->q[band] = NULL;
	smalti_linear_add(task_group, &layer->out, pixels, layers->compute, o,
			  smalti_feature_map_body(task_group, x, band));
	smalti_tile_release(o);
}

void smalti_vae_attention(const struct smalti_vae_net *layers, const struct smalti_vae_layer *layer,
			  struct smalti_task_group *task_group, struct smalti_feature_map *x)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct projections all = {smalti_calloc(x->partition.bands, sizeof(struct smalti_tile *), &error),
				  smalti_calloc(x->partition.bands, sizeof(struct smalti_tile *), &error),
				  smalti_calloc(x->partition.bands, sizeof(int64_t), &error)};
	const int64_t bands = all.q && all.kv && all.pixels ? x->partition.bands : 0;
	if (!bands)
		smalti_task_group_break(task_group, &error);
	for (int64_t b = 0; b < bands && !smalti_task_group_broken(task_group); b++)
		project(layers, layer, task_group, x, b, &all);
	for (int64_t b = 0; b < bands && !smalti_task_group_broken(task_group); b++)
		attend(layers, layer, task_group, x, b, &all);
	for (int64_t b = 0; b < bands; b++) {
		smalti_tile_release(all.q[b]);
		smalti_tile_release(all.kv[b]);
	}
	free(all.q);
	free(all.kv);
	free(all.pixels);
}
