/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae.h"

#include "base/alloc.h"
#include "graphs/attention.h"
#include "graphs/features.h"
#include "graphs/linear.h"
#include "graphs/vae_weights.h"

#include <stdlib.h>

static const double group_norm_epsilon = 1e-6; /* everywhere in this VAE (5.1) */

struct smalti_vae_decoder *smalti_vae_decoder_new(struct smalti_scope *scope,
						  const struct smalti_vae_config *config,
						  const struct smalti_checkpoint *checkpoint,
						  enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_vae_decoder *vae = smalti_calloc(1, sizeof(*vae), error);
	if (!vae)
		return NULL;
	vae->config = *config;
	vae->compute = compute;
	vae->resnets =
	    smalti_calloc(config->blocks * (config->layers_per_block + 1), sizeof(*vae->resnets), error);
	vae->store = smalti_store_new(scope, checkpoint, compute, error);
	if (vae->resnets && vae->store) {
		smalti_vae_decoder_load(vae);
		if (smalti_store_status(vae->store, error) == 0)
			return vae;
	}
	smalti_vae_decoder_free(vae);
	return NULL;
}

void smalti_vae_decoder_free(struct smalti_vae_decoder *vae)
{
	if (!vae)
		return;
	smalti_store_free(vae->store);
	free(vae->resnets);
	free(vae);
}

const struct smalti_vae_config *smalti_vae_decoder_config(const struct smalti_vae_decoder *vae)
{
	return &vae->config;
}

int64_t smalti_vae_decoder_weight_bytes(const struct smalti_vae_decoder *vae)
{
	return smalti_store_bytes(vae->store);
}

/* The widest moment is the first resnet after the last upsampling: its input (of the second widest block) and
 * its output are whole, and each worker has one band assembled. */
int64_t smalti_vae_decoder_working_bytes(const struct smalti_vae_decoder *vae, int64_t height, int64_t width,
					 int64_t band_rows, int workers)
{
	const struct smalti_vae_config *c = &vae->config;
	int64_t worst = 0;
	for (int block = 0; block < c->blocks; block++) {
		int64_t scale = (int64_t)1 << block;
		int64_t in = c->channels[c->blocks - 1 - (block ? block - 1 : 0)];
		int64_t out = c->channels[c->blocks - 1 - block];
		int64_t row = scale * width * (int64_t)sizeof(float);
		int64_t maps = scale * height * row * (in + 2 * out);
		int64_t assembled = workers * (scale * band_rows + 2) * row * in;
		worst = maps + assembled > worst ? maps + assembled : worst;
	}
	return worst;
}

/* A decoding under way; `map` is where it has come to. */
struct decoding {
	const struct smalti_vae_decoder *vae;
	struct smalti_scope *scope;
	struct smalti_features map;
};

static struct smalti_conv_input normalised(const struct decoding *d, const struct smalti_affine *norm)
{
	return (struct smalti_conv_input){
	    .norm = norm, .groups = d->vae->config.norm_groups, .epsilon = group_norm_epsilon};
}

static void replace(struct decoding *d, struct smalti_features map)
{
	smalti_features_release(&d->map);
	d->map = map;
}

/* The 1×1 convolution of the raw map, where the channels change (5.1). */
static struct smalti_features shortcut(struct decoding *d, const struct smalti_linear *linear)
{
	if (smalti_scope_failed(d->scope))
		return (struct smalti_features){0};
	struct smalti_features y = smalti_features_new(d->scope, &d->map.cut, 1, d->map.width, linear->out);
	for (int64_t b = 0; b < y.cut.bands && !smalti_scope_failed(d->scope); b++) {
		smalti_tile_release(y.body[b]);
		y.body[b] = smalti_linear(d->scope, linear, smalti_features_pixels(&y, b), SMALTI_F32,
					  d->map.body[b], SMALTI_EPILOGUE_NONE, SMALTI_F32);
	}
	return y;
}

/* shortcut(x) + conv2(SiLU(GN2(conv1(SiLU(GN1(x)))))) */
static void resnet(struct decoding *d, const struct smalti_resnet *w)
{
	const int64_t groups = d->vae->config.norm_groups;
	const struct smalti_conv_input first = normalised(d, &w->norm1), second = normalised(d, &w->norm2);
	struct smalti_features h =
	    smalti_features_conv(d->scope, &d->map, &first, &w->conv1, d->vae->compute, groups);
	if (w->shortcut.weight)
		replace(d, shortcut(d, &w->shortcut));
	smalti_features_conv_add(d->scope, &h, &second, &w->conv2, d->vae->compute, groups, &d->map);
	smalti_features_release(&h);
}

/* x += O(attention(GN(x))), one head over all positions: each band's queries against all bands' keys. */
static void mid_attention(struct decoding *d)
{
	const struct smalti_vae_attention *w = &d->vae->mid_attention;
	const struct smalti_features *x = &d->map;
	const enum smalti_dtype dtype = d->vae->compute;
	const struct smalti_heads heads = {1, x->channels, dtype};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile **q = smalti_calloc(x->cut.bands, sizeof(struct smalti_tile *), &error);
	struct smalti_tile **kv = smalti_calloc(x->cut.bands, sizeof(struct smalti_tile *), &error);
	const int64_t bands = q && kv ? x->cut.bands : 0;
	if (!q || !kv)
		smalti_scope_fail(d->scope, &error);
	for (int64_t b = 0; b < bands && !smalti_scope_failed(d->scope); b++) {
		const int64_t pixels = smalti_features_pixels(x, b);
		struct smalti_tile *h =
		    smalti_tile_new(d->scope, pixels, x->channels * smalti_dtype_bytes(dtype));
		smalti_insert(groupnorm, d->scope,
			      (.x = x->body[b], .moments = x->moments,
			       .gamma = smalti_weight_tile(w->norm.gamma),
			       .beta = smalti_weight_tile(w->norm.beta), .y = h),
			      .pixels = pixels, .channels = x->channels, .groups = d->vae->config.norm_groups,
			      .epsilon = group_norm_epsilon, .dtype = dtype);
		q[b] = smalti_linear(d->scope, &w->q, pixels, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
		kv[b] = smalti_linear(d->scope, &w->kv, pixels, dtype, h, SMALTI_EPILOGUE_NONE, dtype);
		smalti_tile_release(h);
	}
	for (int64_t b = 0; b < bands && !smalti_scope_failed(d->scope); b++) {
		const int64_t pixels = smalti_features_pixels(x, b);
		struct smalti_tile *o = smalti_attend(d->scope, &heads, pixels, q[b], &x->cut, x->width, kv);
		smalti_linear_add(d->scope, &w->out, pixels, dtype, o, x->body[b]);
		smalti_tile_release(o);
	}
	for (int64_t b = 0; b < bands; b++) {
		smalti_tile_release(q[b]);
		smalti_tile_release(kv[b]);
	}
	free(q);
	free(kv);
	smalti_features_publish(d->scope, &d->map, d->vae->config.norm_groups);
}

/* The latents' rows, unscaled and through post_quant_conv, as a map. */
static void begin(struct decoding *d, struct smalti_tile *latents, int64_t height, int64_t width,
		  const struct smalti_cut *cut)
{
	const struct smalti_vae_config *c = &d->vae->config;
	d->map = smalti_features_new(d->scope, cut, 1, width, c->latent_channels);
	for (int64_t b = 0; b < cut->bands && !smalti_scope_failed(d->scope); b++) {
		smalti_insert(latent_rows, d->scope, (.planes = latents, .y = d->map.body[b]),
			      .channels = c->latent_channels, .height = height, .width = width,
			      .first_row = cut->first[b], .rows = smalti_cut_rows(cut, b),
			      .scale = (float)(1.0 / c->scaling_factor));
		if (!c->post_quant_conv)
			continue;
		struct smalti_tile *raw = d->map.body[b];
		d->map.body[b] =
		    smalti_linear(d->scope, &d->vae->post_quant_conv, smalti_features_pixels(&d->map, b),
				  SMALTI_F32, raw, SMALTI_EPILOGUE_NONE, SMALTI_F32);
		smalti_tile_release(raw);
	}
	smalti_features_publish(d->scope, &d->map, 0);
}

static void emit(struct decoding *d, smalti_row_sink sink, void *user)
{
	struct smalti_tile *token = smalti_tile_new(d->scope, 1, 1); /* orders the bands: each updates it */
	smalti_insert(clear, d->scope, (.y = token), .bytes = 1);
	for (int64_t b = 0; b < d->map.cut.bands && !smalti_scope_failed(d->scope); b++)
		smalti_insert(emit_rows, d->scope, (.x = d->map.body[b], .sink = token),
			      .rows = smalti_cut_rows(&d->map.cut, b), .width = d->map.width,
			      .first = d->map.cut.first[b], .sink = sink, .user = user);
	smalti_tile_release(token);
}

void smalti_vae_decode(struct smalti_vae_decoder *vae, struct smalti_scope *scope,
		       struct smalti_tile *latents, int64_t height, int64_t width, int64_t band_rows,
		       smalti_row_sink sink, void *user)
{
	const struct smalti_vae_config *c = &vae->config;
	const struct smalti_conv_input plain = {0}, upsampled = {.upsample = true};
	struct decoding d = {.vae = vae, .scope = scope};
	const struct smalti_conv_input last = normalised(&d, &vae->norm_out);
	struct smalti_cut cut = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (smalti_cut_even(&cut, height, band_rows, &error) < 0) {
		smalti_scope_fail(scope, &error);
		return;
	}
	begin(&d, latents, height, width, &cut);
	replace(&d, smalti_features_conv(scope, &d.map, &plain, &vae->conv_in, vae->compute, c->norm_groups));
	resnet(&d, &vae->mid_resnets[0]);
	if (c->mid_block_attention)
		mid_attention(&d);
	resnet(&d, &vae->mid_resnets[1]);
	const int64_t layers = c->layers_per_block + 1;
	for (int block = 0; block < c->blocks; block++) {
		for (int64_t layer = 0; layer < layers; layer++)
			resnet(&d, &vae->resnets[block * layers + layer]);
		if (block < c->blocks - 1)
			replace(&d, smalti_features_conv(scope, &d.map, &upsampled, &vae->upsample[block],
							 vae->compute, c->norm_groups));
	}
	replace(&d, smalti_features_conv(scope, &d.map, &last, &vae->conv_out, vae->compute, 0));
	emit(&d, sink, user);
	smalti_features_release(&d.map);
	smalti_cut_free(&cut);
}
