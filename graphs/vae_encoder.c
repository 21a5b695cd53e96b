/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae_encoder.h"

#include "base/alloc.h"
#include "graphs/linear.h"
#include "graphs/vae_encoder_weights.h"

#include <stdlib.h>

struct smalti_vae_encoder *smalti_vae_encoder_new(struct smalti_scope *scope,
						  const struct smalti_vae_config *config,
						  const struct smalti_checkpoint *checkpoint,
						  enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_vae_encoder *vae = smalti_calloc(1, sizeof(*vae), error);
	if (!vae)
		return NULL;
	vae->config = *config;
	vae->compute = compute;
	vae->resnets = smalti_calloc(config->blocks * config->layers_per_block, sizeof(*vae->resnets), error);
	vae->store = smalti_store_new(scope, checkpoint, compute, error);
	if (vae->resnets && vae->store) {
		smalti_vae_encoder_load(vae);
		if (smalti_store_status(vae->store, error) == 0)
			return vae;
	}
	smalti_vae_encoder_free(vae);
	return NULL;
}

void smalti_vae_encoder_free(struct smalti_vae_encoder *vae)
{
	if (!vae)
		return;
	smalti_store_free(vae->store);
	free(vae->resnets);
	free(vae);
}

const struct smalti_vae_config *smalti_vae_encoder_config(const struct smalti_vae_encoder *vae)
{
	return &vae->config;
}

int64_t smalti_vae_encoder_weight_bytes(const struct smalti_vae_encoder *vae)
{
	return smalti_store_bytes(vae->store);
}

/* The picture as a map. */
static void begin(struct smalti_vae_pass *p, const struct smalti_cut *cut, int64_t width,
		  smalti_row_source source, void *user)
{
	struct smalti_tile *token = smalti_tile_new(p->scope, 1, 1); /* orders the bands: each updates it */
	smalti_insert(clear, p->scope, (.y = token), .bytes = 1);
	p->map = smalti_features_new(p->scope, cut, width, p->config->image_channels);
	for (int64_t b = 0; b < cut->bands && !smalti_scope_failed(p->scope); b++)
		smalti_insert(read_rows, p->scope, (.y = p->map.body[b], .source = token),
			      .rows = smalti_cut_rows(cut, b), .width = width, .first = cut->first[b],
			      .source = source, .user = user);
	smalti_tile_release(token);
	smalti_features_publish(p->scope, &p->map, 0);
}

/* From the picture to mean and logarithm of the variance, as a map. */
static void encode(struct smalti_vae_pass *p, const struct smalti_vae_encoder *vae)
{
	const struct smalti_vae_config *c = p->config;
	const struct smalti_conv_input plain = {0};
	const struct smalti_conv_input last = smalti_vae_normalised(p, &vae->norm_out);
	smalti_vae_conv(p, &plain, &vae->conv_in, c->norm_groups);
	for (int block = 0; block < c->blocks; block++) {
		for (int64_t layer = 0; layer < c->layers_per_block; layer++)
			smalti_vae_resnet(p, &vae->resnets[block * c->layers_per_block + layer]);
		if (block < c->blocks - 1)
			smalti_vae_conv(p, &plain, &vae->downsample[block], c->norm_groups);
	}
	smalti_vae_mid_block(p, &vae->mid_block);
	smalti_vae_conv(p, &last, &vae->conv_out, 0);
	if (vae->quant_conv.weight)
		smalti_vae_linear(p, &vae->quant_conv);
}

static struct smalti_tile *collect(struct smalti_vae_pass *p, int64_t height, int64_t width)
{
	const int64_t channels = p->config->latent_channels;
	struct smalti_tile *planes =
	    smalti_tile_new(p->scope, 2 * channels * height, width * (int64_t)sizeof(float));
	smalti_insert(clear, p->scope, (.y = planes),
		      .bytes = 2 * channels * height * width * (int64_t)sizeof(float));
	for (int64_t b = 0; b < p->map.cut.bands && !smalti_scope_failed(p->scope); b++)
		smalti_insert(posterior_rows, p->scope, (.moments = p->map.body[b], .planes = planes),
			      .channels = channels, .height = height, .width = width,
			      .first_row = p->map.cut.first[b], .rows = smalti_cut_rows(&p->map.cut, b));
	return planes;
}

struct smalti_tile *smalti_vae_encode(struct smalti_vae_encoder *vae, struct smalti_scope *scope,
				      int64_t height, int64_t width, int64_t band_rows,
				      smalti_row_source source, void *user)
{
	const int64_t factor = smalti_vae_factor(&vae->config);
	struct smalti_vae_pass pass = {.config = &vae->config, .compute = vae->compute, .scope = scope};
	struct smalti_cut latent = {0}, cut = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile *planes = NULL;
	if (smalti_cut_even(&latent, height, band_rows, &error) < 0 ||
	    smalti_cut_scale(&cut, &latent, factor, 1, &error) < 0) {
		smalti_scope_fail(scope, &error);
	} else {
		begin(&pass, &cut, factor * width, source, user);
		encode(&pass, vae);
		planes = collect(&pass, height, width);
		smalti_features_release(&pass.map);
	}
	smalti_cut_free(&latent);
	smalti_cut_free(&cut);
	return planes;
}
