/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae_encoder.h"

#include "base/alloc.h"
#include "graphs/vae_pass.h"
#include "graphs/vae_search.h"

#include <stdlib.h>

struct smalti_vae_encoder {
	struct smalti_vae_layers layers;
};

struct smalti_vae_encoder *smalti_vae_encoder_new(struct smalti_scope *scope,
						  const struct smalti_vae_config *config,
						  const struct smalti_checkpoint *checkpoint,
						  enum smalti_dtype compute, struct smalti_error *error)
{
	struct smalti_vae_encoder *vae = smalti_calloc(1, sizeof(*vae), error);
	if (!vae)
		return NULL;
	if (smalti_vae_layers_encoder(&vae->layers, scope, config, checkpoint, compute, error) < 0) {
		free(vae);
		return NULL;
	}
	return vae;
}

void smalti_vae_encoder_free(struct smalti_vae_encoder *vae)
{
	if (!vae)
		return;
	smalti_vae_layers_free(&vae->layers);
	free(vae);
}

const struct smalti_vae_config *smalti_vae_encoder_config(const struct smalti_vae_encoder *vae)
{
	return &vae->layers.config;
}

const struct smalti_vae_layers *smalti_vae_encoder_layers(const struct smalti_vae_encoder *vae)
{
	return &vae->layers;
}

int64_t smalti_vae_encoder_weight_bytes(const struct smalti_vae_encoder *vae)
{
	return smalti_weights_bytes(vae->layers.weights);
}

int smalti_vae_encoder_plan(const struct smalti_vae_encoder *vae, int64_t height, int64_t width,
			    int64_t band_rows, const struct smalti_vae_budget *budget,
			    struct smalti_vae_plan *plan, struct smalti_error *error)
{
	const int64_t factor = smalti_vae_factor(&vae->layers.config);
	struct smalti_cut latent = {0}, cut = {0};
	int status = -1;
	*plan = (struct smalti_vae_plan){0};
	if (smalti_cut_even(&latent, height, band_rows, error) == 0 &&
	    smalti_cut_scale(&cut, &latent, factor, 1, error) == 0)
		status = smalti_vae_plan_make(plan, &vae->layers, &cut, factor * width, budget, error);
	smalti_cut_free(&latent);
	smalti_cut_free(&cut);
	return status;
}

struct ends {
	int64_t channels, height, width;    /* of the latent */
	struct smalti_tile *token, *planes; /* `token` orders the bands that are read: each updates it */
	smalti_row_source source;
	void *user;
};

static void begin(void *user, struct smalti_scope *scope, struct smalti_features *map, int64_t band)
{
	const struct ends *ends = user;
	smalti_insert(read_rows, scope, (.y = smalti_features_body(scope, map, band), .source = ends->token),
		      .rows = smalti_cut_rows(&map->cut, band), .width = map->width,
		      .first = map->cut.first[band], .source = ends->source, .user = ends->user);
}

static void end(void *user, struct smalti_scope *scope, struct smalti_features *map, int64_t band)
{
	const struct ends *ends = user;
	smalti_insert(posterior_rows, scope,
		      (.moments = smalti_features_body(scope, map, band), .planes = ends->planes),
		      .channels = ends->channels, .height = ends->height, .width = ends->width,
		      .first_row = map->cut.first[band], .rows = smalti_cut_rows(&map->cut, band));
}

struct smalti_tile *smalti_vae_encode(struct smalti_vae_encoder *vae, struct smalti_scope *scope,
				      const struct smalti_vae_plan *plan, smalti_row_source source,
				      void *user)
{
	const int64_t factor = smalti_vae_factor(&vae->layers.config);
	struct ends ends = {.channels = vae->layers.config.latent_channels,
			    .height = plan->cut.first[plan->cut.bands] / factor,
			    .width = plan->width / factor,
			    .source = source,
			    .user = user};
	const int64_t rows = 2 * ends.channels * ends.height, row = ends.width * (int64_t)sizeof(float);
	ends.token = smalti_tile_new(scope, 1, 1);
	ends.planes = smalti_tile_new(scope, rows, row);
	smalti_insert(clear, scope, (.y = ends.token), .bytes = 1);
	smalti_insert(clear, scope, (.y = ends.planes), .bytes = rows * row);
	smalti_vae_run(&vae->layers, plan, scope, &(const struct smalti_vae_ends){begin, end, &ends});
	smalti_tile_release(ends.token);
	return ends.planes;
}
