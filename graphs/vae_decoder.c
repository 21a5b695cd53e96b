/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae_decoder.h"

#include "base/alloc.h"
#include "graphs/linear.h"
#include "graphs/vae_decoder_weights.h"

#include <stdlib.h>

/* Weights above this are packed anew in each decoding, layer by layer: that takes no longer than fresh memory
 * for all of them would. */
enum { LARGEST_KEPT = 128 << 20 };

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
		if (smalti_store_status(vae->store, error) == 0) {
			smalti_store_set_transient(vae->store, smalti_store_bytes(vae->store) > LARGEST_KEPT);
			return vae;
		}
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

void smalti_vae_decoder_set_transient(struct smalti_vae_decoder *vae, bool transient)
{
	smalti_store_set_transient(vae->store, transient);
}

int64_t smalti_vae_decoder_weight_bytes(const struct smalti_vae_decoder *vae)
{
	return smalti_store_bytes(vae->store);
}

/* The widest moment is the first resnet after the last upsampling. */
int64_t smalti_vae_decoder_working_bytes(const struct smalti_vae_decoder *vae, int64_t height, int64_t width,
					 int64_t band_rows, int workers)
{
	const struct smalti_vae_config *c = &vae->config;
	int64_t worst = 0;
	for (int block = 0; block < c->blocks; block++) {
		const int64_t scale = (int64_t)1 << block;
		const int64_t bytes = smalti_vae_resnet_bytes(
		    scale * height, scale * width, c->channels[c->blocks - 1 - (block ? block - 1 : 0)],
		    c->channels[c->blocks - 1 - block], scale * band_rows, workers);
		worst = bytes > worst ? bytes : worst;
	}
	return worst + smalti_store_pass_bytes(vae->store);
}

double smalti_vae_decoder_flops(const struct smalti_vae_decoder *vae, int64_t height, int64_t width)
{
	const struct smalti_vae_config *c = &vae->config;
	double pixels = (double)height * (double)width;
	int64_t in = c->channels[c->blocks - 1];
	double flops =
	    pixels * 18 * (double)(c->latent_channels * in) + smalti_vae_mid_block_flops(c, pixels);
	for (int block = 0; block < c->blocks; block++) {
		const int64_t out = c->channels[c->blocks - 1 - block];
		flops += smalti_vae_resnet_flops(pixels, in, out) +
			 (double)c->layers_per_block * smalti_vae_resnet_flops(pixels, out, out);
		if (block < c->blocks - 1)
			flops += (pixels *= 4) * 18 * (double)(out * out);
		in = out;
	}
	return flops + pixels * 18 * (double)(in * c->image_channels);
}

/* The latents' rows, unscaled and through post_quant_conv, as a map. */
static void begin(struct smalti_vae_pass *p, const struct smalti_linear *post_quant_conv,
		  struct smalti_tile *latents, int64_t height, int64_t width, const struct smalti_cut *cut)
{
	const struct smalti_vae_config *c = p->config;
	p->map = smalti_features_new(p->scope, cut, width, c->latent_channels);
	for (int64_t b = 0; b < cut->bands && !smalti_scope_failed(p->scope); b++)
		smalti_insert(latent_rows, p->scope, (.planes = latents, .y = p->map.body[b]),
			      .channels = c->latent_channels, .height = height, .width = width,
			      .first_row = cut->first[b], .rows = smalti_cut_rows(cut, b),
			      .scale = (float)(1.0 / c->scaling_factor));
	if (post_quant_conv->weight)
		smalti_vae_linear(p, post_quant_conv);
	smalti_features_publish(p->scope, &p->map, 0);
}

static void emit(struct smalti_vae_pass *p, smalti_row_sink sink, void *user)
{
	struct smalti_tile *token = smalti_tile_new(p->scope, 1, 1); /* orders the bands: each updates it */
	smalti_insert(clear, p->scope, (.y = token), .bytes = 1);
	for (int64_t b = 0; b < p->map.cut.bands && !smalti_scope_failed(p->scope); b++)
		smalti_insert(emit_rows, p->scope, (.x = p->map.body[b], .sink = token),
			      .rows = smalti_cut_rows(&p->map.cut, b), .width = p->map.width,
			      .first = p->map.cut.first[b], .sink = sink, .user = user);
	smalti_tile_release(token);
}

/* From latents to the picture's map. */
static void decode(struct smalti_vae_pass *p, const struct smalti_vae_decoder *vae)
{
	const struct smalti_vae_config *c = p->config;
	const struct smalti_conv_input plain = {0}, upsampled = {.upsample = true};
	const struct smalti_conv_input last = smalti_vae_normalised(p, &vae->norm_out);
	const int64_t layers = c->layers_per_block + 1;
	smalti_vae_conv(p, &plain, &vae->conv_in, c->norm_groups);
	smalti_vae_mid_block(p, &vae->mid_block);
	for (int block = 0; block < c->blocks; block++) {
		for (int64_t layer = 0; layer < layers; layer++)
			smalti_vae_resnet(p, &vae->resnets[block * layers + layer]);
		if (block < c->blocks - 1)
			smalti_vae_conv(p, &upsampled, &vae->upsample[block], c->norm_groups);
	}
	smalti_vae_conv(p, &last, &vae->conv_out, 0);
}

void smalti_vae_decode(struct smalti_vae_decoder *vae, struct smalti_scope *scope,
		       struct smalti_tile *latents, int64_t height, int64_t width, int64_t band_rows,
		       smalti_row_sink sink, void *user)
{
	struct smalti_vae_pass pass = {.config = &vae->config, .compute = vae->compute, .scope = scope};
	struct smalti_cut cut = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (smalti_cut_even(&cut, height, band_rows, &error) < 0) {
		smalti_scope_fail(scope, &error);
		return;
	}
	begin(&pass, &vae->post_quant_conv, latents, height, width, &cut);
	decode(&pass, vae);
	emit(&pass, sink, user);
	smalti_features_release(&pass.map);
	smalti_cut_free(&cut);
}
