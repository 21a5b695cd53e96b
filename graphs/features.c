/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/features.h"

#include "base/alloc.h"
#include "graphs/linear.h"
#include "kernels/norms.h"

#include <stdlib.h>

static struct smalti_tile **new_tiles(struct smalti_scope *scope, int64_t count)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tile **tiles = smalti_calloc(count, sizeof(struct smalti_tile *), &error);
	if (!tiles)
		smalti_scope_fail(scope, &error);
	return tiles;
}

static struct smalti_tile *new_moments(struct smalti_scope *scope, int64_t groups)
{
	return groups ? smalti_tile_new(scope, groups, sizeof(struct smalti_moments)) : NULL;
}

/* An empty map in the bands of `cut`, each `divisor` rows of which are `factor` rows here. */
static struct smalti_features scaled(struct smalti_scope *scope, const struct smalti_cut *cut, int64_t factor,
				     int64_t divisor, int64_t width, int64_t channels)
{
	struct smalti_features map = {.width = width, .channels = channels};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (smalti_cut_scale(&map.cut, cut, factor, divisor, &error) < 0) {
		smalti_scope_fail(scope, &error);
		return (struct smalti_features){0};
	}
	const int64_t bands = map.cut.bands, row_bytes = channels * (int64_t)sizeof(float);
	map.body = new_tiles(scope, bands);
	map.top = new_tiles(scope, bands);
	map.bottom = new_tiles(scope, bands);
	for (int64_t b = 0; b < bands && !smalti_scope_failed(scope); b++) {
		map.body[b] = smalti_tile_new(scope, smalti_cut_rows(&map.cut, b) * width, row_bytes);
		map.top[b] = b > 0 ? smalti_tile_new(scope, width, row_bytes) : NULL;
		map.bottom[b] = b < bands - 1 ? smalti_tile_new(scope, width, row_bytes) : NULL;
	}
	return map;
}

struct smalti_features smalti_features_new(struct smalti_scope *scope, const struct smalti_cut *cut,
					   int64_t width, int64_t channels)
{
	return scaled(scope, cut, 1, 1, width, channels);
}
static void release_tiles(struct smalti_tile **tiles, int64_t count)
{
	for (int64_t i = 0; tiles && i < count; i++)
		smalti_tile_release(tiles[i]);
	free(tiles);
}

void smalti_features_release(struct smalti_features *map)
{
	release_tiles(map->body, map->cut.bands);
	release_tiles(map->top, map->cut.bands);
	release_tiles(map->bottom, map->cut.bands);
	smalti_tile_release(map->moments);
	smalti_cut_free(&map->cut);
	*map = (struct smalti_features){0};
}

int64_t smalti_features_pixels(const struct smalti_features *map, int64_t band)
{
	return smalti_cut_rows(&map->cut, band) * map->width;
}

/* A tree of merges in the order of the bands; takes over (releases) `parts`. */
static struct smalti_tile *merge_moments(struct smalti_scope *scope, struct smalti_tile **parts,
					 int64_t count, int64_t groups)
{
	while (count > 1 && !smalti_scope_failed(scope)) {
		int64_t merged = 0;
		for (int64_t first = 0; first < count; first += SMALTI_MANY) {
			struct merge_moments_buffers buffers = {.merged = new_moments(scope, groups)};
			int64_t end = first + SMALTI_MANY < count ? first + SMALTI_MANY : count;
			for (int64_t i = first; i < end; i++)
				buffers.parts[i - first] = parts[i];
			smalti_insert_merge_moments(
			    scope, &buffers, &(const struct merge_moments_arguments){.groups = groups});
			for (int64_t i = first; i < end; i++) {
				smalti_tile_release(parts[i]);
				parts[i] = NULL;
			}
			parts[merged++] = buffers.merged;
		}
		count = merged;
	}
	struct smalti_tile *all = parts[0];
	for (int64_t i = 1; i < count; i++) /* only after a failure */
		smalti_tile_release(parts[i]);
	return all;
}

/* Bands of statistics for a map that is about to be written; NULL when nobody wants them. */
static struct smalti_tile **begin_moments(struct smalti_scope *scope, const struct smalti_features *map,
					  int64_t groups)
{
	if (!groups || !map->cut.bands)
		return NULL;
	struct smalti_tile **parts = new_tiles(scope, map->cut.bands);
	for (int64_t b = 0; parts && b < map->cut.bands; b++)
		parts[b] = new_moments(scope, groups);
	return parts;
}

static void end_moments(struct smalti_scope *scope, struct smalti_features *map, struct smalti_tile **parts,
			int64_t groups)
{
	smalti_tile_release(map->moments);
	map->moments = parts ? merge_moments(scope, parts, map->cut.bands, groups) : NULL;
	free(parts);
}

void smalti_features_publish(struct smalti_scope *scope, struct smalti_features *map, int64_t groups)
{
	struct smalti_tile **parts = begin_moments(scope, map, groups);
	for (int64_t b = 0; b < map->cut.bands && !smalti_scope_failed(scope); b++)
		smalti_insert(edges, scope,
			      (.x = map->body[b], .top = map->top[b], .bottom = map->bottom[b],
			       .moments = parts ? parts[b] : NULL),
			      .rows = smalti_cut_rows(&map->cut, b), .width = map->width,
			      .channels = map->channels, .groups = groups);
	end_moments(scope, map, parts, groups);
}

static void insert_linear(struct smalti_scope *scope, const struct smalti_features *x,
			  const struct smalti_linear *linear, int64_t band, struct smalti_features *y)
{
	smalti_tile_release(y->body[band]);
	y->body[band] = smalti_linear(scope, linear, smalti_features_pixels(x, band), SMALTI_F32,
				      x->body[band], SMALTI_EPILOGUE_NONE, SMALTI_F32);
}

struct smalti_features smalti_features_linear(struct smalti_scope *scope, const struct smalti_features *x,
					      const struct smalti_linear *linear)
{
	if (smalti_scope_failed(scope))
		return (struct smalti_features){0};
	struct smalti_features y = smalti_features_new(scope, &x->cut, x->width, linear->out);
	for (int64_t b = 0; b < y.cut.bands && !smalti_scope_failed(scope); b++)
		insert_linear(scope, x, linear, b, &y);
	return y;
}

/* The task of one band, but for what it does to y. */
static struct conv_buffers band_buffers(const struct smalti_features *x, int64_t b,
					const struct smalti_conv_input *input,
					const struct smalti_kernel *kernel, const struct smalti_features *y,
					struct smalti_tile *y_moments)
{
	const bool norm = input->norm != NULL;
	return (struct conv_buffers){.x = x->body[b],
				     .above = b > 0 && kernel->stride == 1 ? x->bottom[b - 1] : NULL,
				     .below = b < x->cut.bands - 1 ? x->top[b + 1] : NULL,
				     .moments = norm ? x->moments : NULL,
				     .gamma = norm ? smalti_weight_tile(input->norm->gamma) : NULL,
				     .beta = norm ? smalti_weight_tile(input->norm->beta) : NULL,
				     .weight = smalti_weight_tile_after(kernel->weight, x->body[0]),
				     .bias = smalti_weight_tile(kernel->bias),
				     .y = y->body[b],
				     .top = y->top[b],
				     .bottom = y->bottom[b],
				     .y_moments = y_moments};
}

static struct conv_arguments band_arguments(const struct smalti_features *x, int64_t b,
					    const struct smalti_conv_input *input,
					    const struct smalti_kernel *kernel, enum smalti_dtype compute,
					    int64_t y_groups)
{
	return (struct conv_arguments){.rows = smalti_cut_rows(&x->cut, b),
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

struct smalti_features smalti_features_fork(struct smalti_scope *scope, const struct smalti_features *x,
					    const struct smalti_conv_input *input,
					    const struct smalti_kernel *kernel, enum smalti_dtype compute,
					    int64_t y_groups, const struct smalti_linear *linear,
					    struct smalti_features *z)
{
	const int64_t factor = input->upsample ? 2 : 1;
	if (smalti_scope_failed(scope))
		return (struct smalti_features){0};
	struct smalti_features y =
	    scaled(scope, &x->cut, factor, kernel->stride, factor * x->width / kernel->stride, kernel->out);
	if (linear)
		*z = smalti_features_new(scope, &x->cut, x->width, linear->out);
	struct smalti_tile **parts = begin_moments(scope, &y, y_groups);
	for (int64_t b = 0; b < y.cut.bands && !smalti_scope_failed(scope); b++) {
		const struct conv_buffers buffers =
		    band_buffers(x, b, input, kernel, &y, parts ? parts[b] : NULL);
		const struct conv_arguments arguments =
		    band_arguments(x, b, input, kernel, compute, y_groups);
		smalti_insert_conv(scope, &buffers, &arguments);
		if (linear)
			insert_linear(scope, x, linear, b, z);
	}
	smalti_weight_done(kernel->weight);
	end_moments(scope, &y, parts, y_groups);
	return y;
}

struct smalti_features smalti_features_conv(struct smalti_scope *scope, const struct smalti_features *x,
					    const struct smalti_conv_input *input,
					    const struct smalti_kernel *kernel, enum smalti_dtype compute,
					    int64_t y_groups)
{
	return smalti_features_fork(scope, x, input, kernel, compute, y_groups, NULL, NULL);
}

void smalti_features_conv_add(struct smalti_scope *scope, const struct smalti_features *x,
			      const struct smalti_conv_input *input, const struct smalti_kernel *kernel,
			      enum smalti_dtype compute, int64_t y_groups, struct smalti_features *y)
{
	struct smalti_tile **parts = begin_moments(scope, y, y_groups);
	for (int64_t b = 0; b < y->cut.bands && !smalti_scope_failed(scope); b++) {
		const struct conv_buffers w = band_buffers(x, b, input, kernel, y, parts ? parts[b] : NULL);
		const struct conv_add_buffers buffers = {w.x,     w.above, w.below,  w.moments,
							 w.gamma, w.beta,  w.weight, w.bias,
							 w.y,     w.top,   w.bottom, w.y_moments};
		const struct conv_arguments arguments =
		    band_arguments(x, b, input, kernel, compute, y_groups);
		smalti_insert_conv_add(scope, &buffers, &arguments);
	}
	smalti_weight_done(kernel->weight);
	end_moments(scope, y, parts, y_groups);
}
