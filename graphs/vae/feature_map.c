/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae/feature_map.h"
#include "graphs/linear.h"
#include "kernels/groupnorm.h"

static struct smalti_tile **new_tiles(struct smalti_task_group *task_group, int64_t count)
{
	return smalti_task_group_calloc(task_group, count, sizeof(struct smalti_tile *));
}

struct smalti_feature_map smalti_feature_map_new(struct smalti_task_group *task_group,
						 const struct smalti_partition *partition, int64_t up,
						 int64_t down, int64_t width, int64_t channels, int64_t slots)
{
	struct smalti_feature_map map = {.width = width, .channels = channels};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (smalti_partition_scale(&map.partition, partition, up, down, &error) < 0) {
		smalti_task_group_break(task_group, &error);
		return (struct smalti_feature_map){0};
	}
	map.slots = slots < partition->bands ? slots : partition->bands;
	map.body = new_tiles(task_group, map.slots);
	map.top = new_tiles(task_group, map.slots);
	map.bottom = new_tiles(task_group, map.slots);
	map.part = new_tiles(task_group, map.partition.bands);
	return map;
}

static void drop_tiles(struct smalti_tile **tiles, int64_t count)
{
	for (int64_t i = 0; tiles && i < count; i++) {
		smalti_tile_release(tiles[i]);
		tiles[i] = NULL;
	}
}

void smalti_feature_map_release(struct smalti_feature_map *map)
{
	drop_tiles(map->body, map->slots);
	drop_tiles(map->top, map->slots);
	drop_tiles(map->bottom, map->slots);
	drop_tiles(map->part, map->partition.bands);
	smalti_tile_release(map->moments);
	free(map->body);
	free(map->top);
	free(map->bottom);
	free(map->part);
	smalti_partition_free(&map->partition);
	*map = (struct smalti_feature_map){0};
}

int64_t smalti_feature_map_bytes(const struct smalti_feature_map *map)
{
	return map->partition.first[map->partition.bands] * map->width * map->channels *
	       (int64_t)sizeof(float);
}

int64_t smalti_feature_map_pixels(const struct smalti_feature_map *map, int64_t band)
{
	return smalti_partition_rows(&map->partition, band) * map->width;
}

/* Returns the rows of a slot: any of its bands has to fit. */
static int64_t slot_rows(const struct smalti_feature_map *map, int64_t band)
{
	int64_t rows = smalti_partition_rows(&map->partition, band);
	for (int64_t b = band % map->slots; b < map->partition.bands; b += map->slots)
		rows = smalti_partition_rows(&map->partition, b) > rows
			   ? smalti_partition_rows(&map->partition, b)
			   : rows;
	return rows;
}

static struct smalti_tile *rows_tile(struct smalti_task_group *task_group,
				     const struct smalti_feature_map *map, int64_t rows)
{
	return smalti_tile_new(task_group, rows * map->width, map->channels * (int64_t)sizeof(float));
}

/* Places a slot's tile where the band that it holds is. */
static struct smalti_tile *owned(const struct smalti_feature_map *map, int64_t band, struct smalti_tile *tile)
{
	if (tile && map->partition.owner)
		tile->owner = map->partition.owner[band];
	return tile;
}

struct smalti_tile *smalti_feature_map_body(struct smalti_task_group *task_group,
					    struct smalti_feature_map *map, int64_t band)
{
	if (smalti_task_group_broken(task_group)) /* then the map may have no slots */
		return NULL;
	struct smalti_tile **tile = &map->body[band % map->slots];
	if (!*tile)
		*tile = rows_tile(task_group, map, slot_rows(map, band));
	return owned(map, band, *tile);
}

void smalti_feature_map_drop_body(struct smalti_feature_map *map, int64_t band)
{
	if (map->body)
		drop_tiles(&map->body[band % map->slots], 1);
}

/* Returns the first row of a band; NULL for the first band. */
static struct smalti_tile *top_of(struct smalti_task_group *task_group, struct smalti_feature_map *map,
				  int64_t band)
{
	struct smalti_tile **tile = &map->top[band % map->slots];
	if (band > 0 && !*tile)
		*tile = rows_tile(task_group, map, 1);
	return band > 0 ? owned(map, band, *tile) : NULL;
}

static struct smalti_tile *bottom_of(struct smalti_task_group *task_group, struct smalti_feature_map *map,
				     int64_t band)
{
	struct smalti_tile **tile = &map->bottom[band % map->slots];
	if (band < map->partition.bands - 1 && !*tile)
		*tile = rows_tile(task_group, map, 1);
	smalti_tile_set_transfer_kind(*tile, SMALTI_TRANSFER_HALO);
	return band < map->partition.bands - 1 ? owned(map, band, *tile) : NULL;
}

static struct smalti_tile *new_moments(struct smalti_task_group *task_group, int64_t groups)
{
	struct smalti_tile *moments = smalti_tile_new(task_group, groups, sizeof(struct smalti_moments));
	smalti_tile_set_transfer_kind(moments, SMALTI_TRANSFER_SUMS);
	return moments;
}

static struct smalti_tile *part_of(struct smalti_task_group *task_group, struct smalti_feature_map *map,
				   int64_t band, int64_t groups)
{
	if (groups && !map->part[band])
		map->part[band] = new_moments(task_group, groups);
	return groups ? map->part[band] : NULL;
}

void smalti_feature_map_publish(struct smalti_task_group *task_group, struct smalti_feature_map *map,
				int64_t band, int64_t groups)
{
	if (smalti_task_group_broken(task_group))
		return;
	smalti_insert(edges, task_group,
		      (.x = smalti_feature_map_body(task_group, map, band),
		       .top = top_of(task_group, map, band), .bottom = bottom_of(task_group, map, band),
		       .moments = part_of(task_group, map, band, groups)),
		      .rows = smalti_partition_rows(&map->partition, band), .width = map->width,
		      .channels = map->channels, .groups = groups);
}

/* Merges SMALTI_MANY parts to one, and so on; releases the parts. */
void smalti_feature_map_merge(struct smalti_task_group *task_group, struct smalti_feature_map *map,
			      int64_t groups)
{
	int64_t count = map->partition.bands;
	while (count > 1 && !smalti_task_group_broken(task_group)) {
		int64_t merged = 0;
		for (int64_t first = 0; first < count; first += SMALTI_MANY) {
			struct merge_moments_buffers buffers = {.merged = new_moments(task_group, groups)};
			int64_t end = first + SMALTI_MANY < count ? first + SMALTI_MANY : count;
			for (int64_t i = first; i < end; i++)
				buffers.parts[i - first] = map->part[i];
			smalti_insert_merge_moments(
			    task_group, &buffers, &(const struct merge_moments_arguments){.groups = groups});
			drop_tiles(map->part + first, end - first);
			map->part[merged++] = buffers.merged;
		}
		count = merged;
	}
	if (smalti_task_group_broken(task_group))
		return;
	smalti_tile_release(map->moments);
	map->moments = map->part[0];
	map->part[0] = NULL;
}

static struct conv_arguments conv_arguments(const struct smalti_feature_map *x, int64_t band,
					    const struct smalti_conv_input *input,
					    const struct smalti_kernel *kernel, enum smalti_dtype compute,
					    int64_t y_groups)
{
	return (struct conv_arguments){.rows = smalti_partition_rows(&x->partition, band),
				       .width = x->width,
				       .in = kernel->in,
				       .out = kernel->out,
				       .stride = kernel->stride,
				       .groups = input->groups,
				       .y_groups = y_groups,
				       .epsilon = (float)input->epsilon,
				       .upsample = input->upsample,
				       .compute = compute};
}

/* Returns a tile that is written with the band's body. An edge is better than the body, to which later
 * convolutions add: these would wait for what waits for it. */
static struct smalti_tile *written_with(const struct smalti_feature_map *x, int64_t band)
{
	const int64_t slot = band % x->slots;
	struct smalti_tile *edge = x->bottom[slot] ? x->bottom[slot] : x->top[slot];
	return edge ? edge : x->body[slot];
}

void smalti_feature_map_conv(struct smalti_task_group *task_group, struct smalti_feature_map *x, int64_t band,
			     const struct smalti_conv_input *input, const struct smalti_kernel *kernel,
			     enum smalti_dtype compute, bool add, int64_t y_groups,
			     struct smalti_feature_map *y)
{
	if (smalti_task_group_broken(task_group))
		return;
	struct conv_arguments arguments = conv_arguments(x, band, input, kernel, compute, y_groups);
	arguments.residual = add;
	const bool norm = input->norm != NULL;
	const struct conv_buffers w = {
	    .x = smalti_feature_map_body(task_group, x, band),
	    .above = band > 0 && kernel->stride == 1 ? bottom_of(task_group, x, band - 1) : NULL,
	    .below = band < x->partition.bands - 1 ? top_of(task_group, x, band + 1) : NULL,
	    .moments = norm ? x->moments : NULL,
	    .gamma = norm ? smalti_weight_tile(input->norm->gamma) : NULL,
	    .beta = norm ? smalti_weight_tile(input->norm->beta) : NULL,
	    .weight = smalti_weight_tile_after(kernel->weight, written_with(x, band)),
	    .bias = smalti_weight_tile(kernel->bias),
	    .y = smalti_feature_map_body(task_group, y, band),
	    .top = top_of(task_group, y, band),
	    .bottom = bottom_of(task_group, y, band),
	    .y_moments = part_of(task_group, y, band, y_groups),
	};
	smalti_insert_conv(task_group, &w, &arguments);
}

void smalti_feature_map_linear(struct smalti_task_group *task_group, struct smalti_feature_map *x,
			       int64_t band, const struct smalti_linear *linear, struct smalti_feature_map *y)
{
	if (smalti_task_group_broken(task_group))
		return;
	smalti_linear_into(task_group, linear, smalti_feature_map_pixels(x, band), SMALTI_F32,
			   smalti_feature_map_body(task_group, x, band), SMALTI_EPILOGUE_NONE, SMALTI_F32,
			   smalti_feature_map_body(task_group, y, band));
}
