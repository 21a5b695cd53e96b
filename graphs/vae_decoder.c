/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae_decoder.h"

#include "base/alloc.h"
#include "graphs/latent_transform.h"
#include "graphs/vae_pass.h"
#include "graphs/vae_search.h"

#include <stdlib.h>

/* Weights above this are packed anew in each decoding, layer by layer: that takes no longer than fresh memory
 * for all of them would. */
enum { LARGEST_KEPT = 128 << 20 };

struct smalti_vae_decoder {
	struct smalti_vae_layers layers;
};

struct smalti_vae_decoder *smalti_vae_decoder_new(struct smalti_scope *scope,
						  const struct smalti_vae_config *config,
						  const struct smalti_checkpoint *checkpoint,
						  enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_vae_decoder *vae = smalti_calloc(1, sizeof(*vae), error);
	if (!vae)
		return NULL;
	if (smalti_vae_layers_decoder(&vae->layers, scope, config, checkpoint, compute, error) < 0) {
		free(vae);
		return NULL;
	}
	smalti_weights_set_transient(vae->layers.weights,
				     smalti_weights_bytes(vae->layers.weights) > LARGEST_KEPT);
	return vae;
}

void smalti_vae_decoder_free(struct smalti_vae_decoder *vae)
{
	if (!vae)
		return;
	smalti_vae_layers_free(&vae->layers);
	free(vae);
}

const struct smalti_vae_config *smalti_vae_decoder_config(const struct smalti_vae_decoder *vae)
{
	return &vae->layers.config;
}

const struct smalti_vae_layers *smalti_vae_decoder_layers(const struct smalti_vae_decoder *vae)
{
	return &vae->layers;
}

void smalti_vae_decoder_set_transient(struct smalti_vae_decoder *vae, bool transient)
{
	smalti_weights_set_transient(vae->layers.weights, transient);
}

int64_t smalti_vae_decoder_weight_bytes(const struct smalti_vae_decoder *vae)
{
	return smalti_weights_bytes(vae->layers.weights);
}

int smalti_vae_decoder_plan(const struct smalti_vae_decoder *vae, int64_t height, int64_t width,
			    int64_t band_rows, const struct smalti_vae_budget *budget,
			    struct smalti_vae_plan *plan, struct smalti_error *error)
{
	struct smalti_cut cut = {0};
	*plan = (struct smalti_vae_plan){0};
	if (smalti_cut_even(&cut, height, band_rows, error) < 0)
		return -1;
	const int status = smalti_vae_plan_make(plan, &vae->layers, &cut, width, budget, error);
	smalti_cut_free(&cut);
	return status;
}

struct ends {
	struct smalti_tile *latents,
	    *token; /* `token` orders the bands that are handed on: each updates it */
	const struct smalti_vae_config *config;
	bool raw;
	struct smalti_latent_transform transform; /* without tiles where one factor does for all channels */
	smalti_row_sink sink;
	void *user;
};

static void begin(void *user, struct smalti_scope *scope, struct smalti_features *map, int64_t band)
{
	const struct ends *ends = user;
	const bool transformed = ends->transform.scale;
	const int64_t pixels = smalti_features_pixels(map, band);
	const double scale = ends->raw || transformed ? 1 : smalti_vae_latent_scale(ends->config, 0).scale;
	struct smalti_tile *body = smalti_features_body(scope, map, band);
	struct smalti_tile *y =
	    transformed ? smalti_tile_new(scope, pixels, map->channels * (int64_t)sizeof(float)) : body;
	smalti_insert(latent_rows, scope, (.planes = ends->latents, .y = y), .channels = map->channels,
		      .height = map->cut.first[map->cut.bands], .width = map->width,
		      .first_row = map->cut.first[band], .rows = smalti_cut_rows(&map->cut, band),
		      .scale = (float)scale);
	if (!transformed)
		return;
	smalti_latent_transform_insert(scope, &ends->transform, pixels, map->channels, y, body);
	smalti_tile_release(y);
}

static void end(void *user, struct smalti_scope *scope, struct smalti_features *map, int64_t band)
{
	const struct ends *ends = user;
	smalti_insert(emit_rows, scope, (.x = smalti_features_body(scope, map, band), .sink = ends->token),
		      .rows = smalti_cut_rows(&map->cut, band), .width = map->width,
		      .first = map->cut.first[band], .sink = ends->sink, .user = ends->user);
}

void smalti_vae_decode(struct smalti_vae_decoder *vae, struct smalti_scope *scope,
		       struct smalti_tile *latents, bool raw, const struct smalti_vae_plan *plan,
		       smalti_row_sink sink, void *user)
{
	const struct smalti_vae_config *config = &vae->layers.config;
	struct ends ends = {.latents = latents, .config = config, .raw = raw, .sink = sink, .user = user};
	if (!raw && config->has_statistics)
		ends.transform = smalti_latent_transform_new(scope, config);
	ends.token = smalti_tile_new(scope, 1, 1);
	smalti_insert(clear, scope, (.y = ends.token), .bytes = 1);
	smalti_vae_run(&vae->layers, plan, scope, &(const struct smalti_vae_ends){begin, end, &ends});
	smalti_latent_transform_release(&ends.transform);
	smalti_tile_release(ends.token);
}
