/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae/ends.h"
#include "graphs/latent_transform.h"
#include "graphs/vae/pass.h"
#include "ranks/ranks.h"

struct decoding {
	struct smalti_tile *latents,
	    *token; /* `token` orders the bands that are handed on: each updates it */
	const struct smalti_vae_config *config;
	bool raw;
	struct smalti_latent_transform transform; /* without tiles if one factor serves all channels */
	smalti_row_sink sink;
	void *user;
};

static void begin_decoding(void *user, struct smalti_task_group *task_group, struct smalti_feature_map *map,
			   int64_t band)
{
	const struct decoding *ends = user;
	const bool transformed = ends->transform.scale;
	const int64_t pixels = smalti_feature_map_pixels(map, band);
	const double scale = ends->raw || transformed ? 1 : smalti_vae_latent_scale(ends->config, 0).scale;
	struct smalti_tile *body = smalti_feature_map_body(task_group, map, band);
	struct smalti_tile *y =
	    transformed ? smalti_tile_new(task_group, pixels, map->channels * (int64_t)sizeof(float)) : body;
	smalti_insert(latent_rows, task_group, (.planes = ends->latents, .y = y), .channels = map->channels,
		      .height = map->partition.first[map->partition.bands], .width = map->width,
		      .first_row = map->partition.first[band],
		      .rows = smalti_partition_rows(&map->partition, band), .scale = (float)scale);
	if (!transformed)
		return;
	smalti_latent_transform_insert(task_group, &ends->transform, pixels, map->channels, y, body);
	smalti_tile_release(y);
}

static void end_decoding(void *user, struct smalti_task_group *task_group, struct smalti_feature_map *map,
			 int64_t band)
{
	const struct decoding *ends = user;
	smalti_insert(emit_rows, task_group,
		      (.x = smalti_feature_map_body(task_group, map, band), .sink = ends->token),
		      .rows = smalti_partition_rows(&map->partition, band), .width = map->width,
		      .first = map->partition.first[band], .sink = ends->sink, .user = ends->user);
}

void smalti_vae_decode(const struct smalti_vae_net *net, struct smalti_task_group *task_group,
		       struct smalti_tile *latents, bool raw, const struct smalti_vae_plan *plan,
		       smalti_row_sink sink, void *user)
{
	const struct smalti_vae_config *config = &net->config;
	struct decoding ends = {.latents = latents, .config = config, .raw = raw, .sink = sink, .user = user};
	if (!raw && config->has_statistics)
		ends.transform = smalti_latent_transform_new(task_group, config);
	ends.token = smalti_tile_new(task_group, 1, 1);
	smalti_insert(clear, task_group, (.y = ends.token), .bytes = 1);
	smalti_vae_run(net, plan, task_group,
		       &(const struct smalti_vae_ends){begin_decoding, end_decoding, &ends});
	smalti_latent_transform_release(&ends.transform);
	smalti_tile_release(ends.token);
}

struct encoding {
	int64_t channels, height, width;    /* of the latent */
	struct smalti_tile *token, *planes; /* `token` orders the bands that are read: each updates it */
	smalti_row_source source;
	void *user;
};

static void begin_encoding(void *user, struct smalti_task_group *task_group, struct smalti_feature_map *map,
			   int64_t band)
{
	const struct encoding *ends = user;
	if (smalti_ranks_count() > 1)
		smalti_task_group_place(task_group, 0); /* whose the rows are */
	smalti_insert(read_rows, task_group,
		      (.y = smalti_feature_map_body(task_group, map, band), .source = ends->token),
		      .rows = smalti_partition_rows(&map->partition, band), .width = map->width,
		      .first = map->partition.first[band], .source = ends->source, .user = ends->user);
	smalti_task_group_place(task_group, SMALTI_ANYWHERE);
}

static void end_encoding(void *user, struct smalti_task_group *task_group, struct smalti_feature_map *map,
			 int64_t band)
{
	const struct encoding *ends = user;
	smalti_insert(posterior_rows, task_group,
		      (.moments = smalti_feature_map_body(task_group, map, band), .planes = ends->planes),
		      .channels = ends->channels, .height = ends->height, .width = ends->width,
		      .first_row = map->partition.first[band],
		      .rows = smalti_partition_rows(&map->partition, band));
}

struct smalti_tile *smalti_vae_encode(const struct smalti_vae_net *net, struct smalti_task_group *task_group,
				      const struct smalti_vae_plan *plan, smalti_row_source source,
				      void *user)
{
	const int64_t factor = smalti_vae_factor(&net->config);
	struct encoding ends = {.channels = net->config.latent_channels,
				.height = plan->partition.first[plan->partition.bands] / factor,
				.width = plan->width / factor,
				.source = source,
				.user = user};
	const int64_t rows = 2 * ends.channels * ends.height, row = ends.width * (int64_t)sizeof(float);
	ends.token = smalti_tile_new(task_group, 1, 1);
	ends.planes = smalti_tile_new(task_group, rows, row);
	smalti_insert(clear, task_group, (.y = ends.token), .bytes = 1);
	smalti_insert(clear, task_group, (.y = ends.planes), .bytes = rows * row);
	smalti_vae_run(net, plan, task_group,
		       &(const struct smalti_vae_ends){begin_encoding, end_encoding, &ends});
	smalti_tile_release(ends.token);
	return ends.planes;
}
