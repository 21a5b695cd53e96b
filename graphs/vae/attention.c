/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/layers/layers.h"
#include "graphs/linear.h"
#include "graphs/vae/pass.h"

/* The attention of a feature map under way. */
struct attention {
	const struct smalti_vae_net *layers;
	const struct smalti_vae_layer *layer;
	struct smalti_tape tape;
	struct smalti_feature_map *x;
	struct smalti_value *q, *kv; /* of each band */
};

static void project(struct attention *a, int64_t band)
{
	const enum smalti_dtype dtype = a->layers->compute;
	struct smalti_task_group *task_group = a->tape.task_group;
	const struct smalti_affine *norm = &a->layer->norm;
	const int64_t pixels = smalti_feature_map_pixels(a->x, band);
	struct smalti_value h = smalti_value_new(&a->tape, pixels, a->x->channels, dtype);
	smalti_insert(groupnorm, task_group,
		      (.x = smalti_feature_map_body(task_group, a->x, band), .moments = a->x->moments,
		       .gamma = smalti_weight_tile(norm->gamma), .beta = smalti_weight_tile(norm->beta),
		       .y = h.tile),
		      .pixels = pixels, .channels = a->x->channels, .groups = a->layers->config.norm_groups,
		      .epsilon = SMALTI_VAE_EPSILON, .dtype = dtype);
	a->q[band] = smalti_layer_linear(&a->tape, &a->layer->q, h, dtype);
	a->kv[band] = smalti_layer_linear(&a->tape, &a->layer->kv, h, dtype);
	smalti_tile_set_transfer_kind(a->kv[band].tile, SMALTI_TRANSFER_KEYS);
	smalti_value_release(&a->tape, &h);
}

static void attend(struct attention *a, int64_t band)
{
	struct smalti_task_group *task_group = a->tape.task_group;
	const struct smalti_heads heads = {1, a->x->channels, a->layers->compute};
	const struct smalti_key_bands keys = {a->x->partition.bands, a->kv, NULL};
	struct smalti_value o = smalti_layer_attend(&a->tape, &heads, a->q[band], &keys);
	smalti_value_release(&a->tape, &a->q[band]);
	smalti_linear_add(task_group, &a->layer->out, o.rows, o.dtype, o.tile,
			  smalti_feature_map_body(task_group, a->x, band));
	smalti_value_release(&a->tape, &o);
}

void smalti_vae_attention(const struct smalti_vae_net *layers, const struct smalti_vae_layer *layer,
			  struct smalti_task_group *task_group, struct smalti_feature_map *x)
{
	struct attention a = {.layers = layers, .layer = layer, .tape = {.task_group = task_group}, .x = x};
	a.q = smalti_task_group_calloc(task_group, x->partition.bands, sizeof(*a.q));
	a.kv = smalti_task_group_calloc(task_group, x->partition.bands, sizeof(*a.kv));
	const int64_t bands = a.q && a.kv ? x->partition.bands : 0;
	for (int64_t b = 0; b < bands && !smalti_task_group_broken(task_group); b++)
		project(&a, b);
	for (int64_t b = 0; b < bands && !smalti_task_group_broken(task_group); b++)
		attend(&a, b);
	for (int64_t b = 0; b < bands; b++) {
		smalti_value_release(&a.tape, &a.q[b]);
		smalti_value_release(&a.tape, &a.kv[b]);
	}
	free(a.q);
	free(a.kv);
}
