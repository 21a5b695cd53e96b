/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae/pass.h"
#include "base/offload.h"
#include "graphs/vae/cost.h"
#include "graphs/vae/feature_map.h"
#include "rt/session.h"

/* A map of the running net. */
struct map {
	struct smalti_feature_map features; /* whole when it is kept, else a window */
	int64_t made;                /* bands that were made in this sweep or, of a stored map, are there */
	bool whole;                  /* stored, and all bands are there */
	struct smalti_tile **stored; /* of each band: its values in bf16, or a token that they are in the
					file; NULL: neither */
	int64_t stored_at;           /* offset in the file */
};

struct pass {
	const struct smalti_vae_net *layers;
	const struct smalti_vae_plan *plan;
	struct smalti_task_group *task_group;
	const struct smalti_vae_ends *ends;
	struct map *map;   /* layers->count + 1 */
	int target;        /* the map that this sweep makes */
	int maps;          /* bands made for the target's last band, itself included */
	bool last;         /* no later sweep reads what is stored before the target */
	int64_t offloaded; /* bytes of the file in use */
};

static int last_map(const struct pass *p)
{
	return p->layers->count;
}

static enum smalti_storage storage(const struct pass *p, int map)
{
	return p->plan->storage[map];
}

static bool early_residual(const struct pass *p, int inner)
{
	return smalti_vae_early_residual(p->layers, p->plan->storage, inner);
}

static void open_map(struct pass *p, int index)
{
	const struct smalti_vae_shape *shape = &p->layers->map[index];
	struct map *map = &p->map[index];
	if (!map->features.body)
		map->features =
		    smalti_feature_map_new(p->task_group, &p->plan->partition, shape->up, shape->down,
					   p->plan->width * shape->up / shape->down, shape->channels,
					   storage(p, index) == SMALTI_KEEP ? INT64_MAX : p->plan->window);
}

static void close_map(struct pass *p, int index)
{
	struct map *map = &p->map[index];
	for (int64_t b = 0; map->stored && b < map->features.partition.bands; b++)
		smalti_tile_release(map->stored[b]);
	free(map->stored);
	smalti_feature_map_release(&map->features);
	*map = (struct map){0};
}

static int64_t band_values(const struct smalti_feature_map *map, int64_t band)
{
	return smalti_feature_map_pixels(map, band) * map->channels;
}

/* Returns the dtype in which values are stored. */
static enum smalti_dtype stored_dtype(const struct pass *p)
{
	return p->plan->bf16 ? SMALTI_BF16 : SMALTI_F32;
}

static struct smalti_tile *converted(struct pass *p, int64_t count)
{
	return smalti_tile_new(p->task_group, count, smalti_dtype_bytes(stored_dtype(p)));
}

static int64_t place(const struct pass *p, const struct map *map, int64_t band)
{
	return map->stored_at + map->features.partition.first[band] * map->features.width *
				    map->features.channels * smalti_dtype_bytes(stored_dtype(p));
}

/* Moves a band from the window into a tile of bf16, or into the file. */
static void store(struct pass *p, int index, int64_t band)
{
	struct map *map = &p->map[index];
	const int64_t count = band_values(&map->features, band);
	struct smalti_tile *body = smalti_feature_map_body(p->task_group, &map->features, band),
			   *rounded = NULL;
	if (p->plan->bf16) {
		rounded = converted(p, count);
		smalti_insert(convert, p->task_group, (.x = body, .y = rounded), .count = count,
			      .from = SMALTI_F32, .to = SMALTI_BF16);
	}
	if (storage(p, index) == SMALTI_KEEP_BF16) {
		map->stored[band] = rounded;
		return;
	}
	map->stored[band] = smalti_tile_new(p->task_group, 1, 1);
	smalti_insert(offload, p->task_group, (.x = rounded ? rounded : body, .token = map->stored[band]),
		      .offset = place(p, map, band), .bytes = count * smalti_dtype_bytes(stored_dtype(p)),
		      .write = smalti_offload_write, .user = p->plan->file);
	smalti_tile_release(rounded);
}

/* Moves a stored band back. */
static void fetch(struct pass *p, int index, int64_t band)
{
	struct map *map = &p->map[index];
	const int64_t count = band_values(&map->features, band);
	struct smalti_tile *body = smalti_feature_map_body(p->task_group, &map->features, band);
	struct smalti_tile *from = map->stored[band];
	if (storage(p, index) == SMALTI_OFFLOAD) {
		from = p->plan->bf16 ? converted(p, count) : body;
		smalti_insert(fetch, p->task_group, (.token = map->stored[band], .y = from),
			      .offset = place(p, map, band),
			      .bytes = count * smalti_dtype_bytes(stored_dtype(p)), .last = p->last,
			      .read = smalti_offload_read, .user = p->plan->file);
	}
	if (from != body)
		smalti_insert(convert, p->task_group, (.x = from, .y = body), .count = count,
			      .from = SMALTI_BF16, .to = SMALTI_F32);
	if (from != body && from != map->stored[band])
		smalti_tile_release(from);
	if (p->last) {
		smalti_tile_release(map->stored[band]);
		map->stored[band] = NULL;
	}
	smalti_feature_map_publish(p->task_group, &map->features, band, 0);
}

/* Makes y's band the shortcut of x's, to which the resnet's end adds. A kept x that is not read again gives y
 * its body. */
static void begin_residual(struct pass *p, int x_index, int64_t band)
{
	struct map *x = &p->map[x_index], *y = &p->map[x_index + 2];
	const struct smalti_linear *shortcut = &p->layers->layer[x_index + 1].linear;
	open_map(p, x_index + 2);
	if (smalti_task_group_broken(p->task_group))
		return;
	if (shortcut->weight) {
		smalti_feature_map_linear(p->task_group, &x->features, band, shortcut, &y->features);
	} else if (p->last && x->whole && storage(p, x_index) == SMALTI_KEEP &&
		   storage(p, x_index + 2) == SMALTI_KEEP) {
		y->features.body[band] = x->features.body[band];
		x->features.body[band] = NULL;
	} else {
		smalti_insert(copy, p->task_group,
			      (.x = smalti_feature_map_body(p->task_group, &x->features, band),
			       .y = smalti_feature_map_body(p->task_group, &y->features, band)),
			      .bytes = band_values(&x->features, band) * (int64_t)sizeof(float));
	}
}

/* Drops a band of a kept map behind its last reader. */
static void drop_behind(struct pass *p, int index, int64_t band)
{
	struct map *map = &p->map[index];
	if (p->last && map->whole && storage(p, index) == SMALTI_KEEP)
		smalti_feature_map_drop_body(&map->features, band);
}

static void convolve(struct pass *p, int y_index, int64_t band)
{
	const struct smalti_vae_layer *layer = &p->layers->layer[y_index - 1];
	struct map *x = &p->map[y_index - 1], *y = &p->map[y_index];
	const bool residual = layer->kind == SMALTI_VAE_RESIDUAL;
	const bool early = early_residual(p, y_index), normalised = layer->norm.gamma;
	const struct smalti_conv_input input = {.norm = normalised ? &layer->norm : NULL,
						.groups = normalised ? p->layers->config.norm_groups : 0,
						.epsilon = normalised ? SMALTI_VAE_EPSILON : 0,
						.upsample = layer->upsample};
	const int64_t groups = y->features.moments ? 0 : smalti_vae_map_groups(p->layers, y_index);
	if (residual && !early_residual(p, y_index - 1)) {
		begin_residual(p, y_index - 2, band);
		drop_behind(p, y_index - 2, band);
	}
	smalti_feature_map_conv(p->task_group, &x->features, band, &input, &layer->kernel, p->layers->compute,
				residual, groups, &y->features);
	if (early)
		begin_residual(p, y_index - 1, band);
	if (early || y_index == last_map(p) || p->layers->layer[y_index].kind != SMALTI_VAE_RESIDUAL)
		drop_behind(p, y_index - 1, band);
}

static void make_band(struct pass *p, int index);

/* Makes bands up to `band`: for a convolution, the one behind the reader's, whose first row it reads. */
static void need(struct pass *p, int index, int64_t band)
{
	struct map *map = &p->map[index];
	open_map(p, index);
	while (!smalti_task_group_broken(p->task_group) && map->made <= band &&
	       map->made < map->features.partition.bands)
		make_band(p, index);
}

/* Makes a map's next band. */
static void make_band(struct pass *p, int index)
{
	struct map *map = &p->map[index];
	const int64_t band = map->made;
	p->maps++;
	smalti_task_group_at(p->task_group, index, band);
	if (map->stored && map->whole) {
		fetch(p, index, band);
	} else if (index == 0) {
		p->ends->begin(p->ends->user, p->task_group, &map->features, band);
		smalti_feature_map_publish(p->task_group, &map->features, band, 0);
	} else if (p->layers->layer[index - 1].kind == SMALTI_VAE_LINEAR) {
		need(p, index - 1, band);
		smalti_task_group_at(p->task_group, index, band);
		smalti_feature_map_linear(p->task_group, &p->map[index - 1].features, band,
					  &p->layers->layer[index - 1].linear, &map->features);
		smalti_feature_map_publish(p->task_group, &map->features, band,
					   map->features.moments ? 0
								 : smalti_vae_map_groups(p->layers, index));
		drop_behind(p, index - 1, band);
	} else {
		need(p, index - 1, band + 1);
		if (p->layers->layer[index - 1].kind == SMALTI_VAE_RESIDUAL && !early_residual(p, index - 1))
			need(p, index - 2, band);
		smalti_task_group_at(p->task_group, index, band); /* needed bands changed it */
		convolve(p, index, band);
	}
	map->made++;
}

/* Inserts attention. It reads its whole map, which becomes the next one. */
static void attend(struct pass *p, int index)
{
	struct map *x = &p->map[index - 1], *y = &p->map[index];
	const int64_t groups = smalti_vae_map_groups(p->layers, index);
	smalti_vae_attention(p->layers, &p->layers->layer[index - 1], p->task_group, &x->features);
	open_map(p, index);
	for (int64_t b = 0; b < y->features.partition.bands && !smalti_task_group_broken(p->task_group);
	     b++) {
		y->features.body[b] = x->features.body[b];
		x->features.body[b] = NULL;
		smalti_feature_map_publish(p->task_group, &y->features, b, groups);
		y->made = b + 1;
	}
}

/* Ends a sweep. What is not stored is made anew in the next; with `last` no map before the target is read
 * again. */
static void end_sweep(struct pass *p)
{
	struct map *target = &p->map[p->target];
	for (int i = 0; i < p->target; i++) {
		smalti_weight_done(p->layers->layer[i].kernel.weight);
		if (p->last)
			close_map(p, i);
		else if (!p->map[i].whole || p->map[i].stored)
			p->map[i].made = 0;
	}
	target->whole = storage(p, p->target) != SMALTI_RECOMPUTE;
	if (storage(p, p->target) != SMALTI_KEEP)
		target->made = 0;
}

static void open_target(struct pass *p)
{
	struct map *map = &p->map[p->target];
	const enum smalti_storage kind = storage(p, p->target);
	open_map(p, p->target);
	if (kind == SMALTI_RECOMPUTE || kind == SMALTI_KEEP || smalti_task_group_broken(p->task_group))
		return;
	map->stored = smalti_task_group_calloc(p->task_group, map->features.partition.bands,
					       sizeof(struct smalti_tile *));
	map->stored_at = p->offloaded;
	if (kind == SMALTI_OFFLOAD)
		p->offloaded += smalti_feature_map_bytes(&map->features);
}

/* Makes all bands of the target: to store them, to hand them on, or only for their statistics. */
static void sweep(struct pass *p)
{
	const int64_t groups = smalti_vae_map_groups(p->layers, p->target);
	struct map *map = &p->map[p->target];
	struct smalti_throttle *throttle = &p->task_group->session->throttle;
	open_target(p);
	if (p->target > 0 && p->layers->layer[p->target - 1].kind == SMALTI_VAE_ATTENTION)
		attend(p, p->target);
	while (!smalti_task_group_broken(p->task_group) && map->made < map->features.partition.bands) {
		p->maps = 0;
		make_band(p, p->target);
		if (map->stored)
			store(p, p->target, map->made - 1);
		if (p->target == last_map(p))
			p->ends->end(p->ends->user, p->task_group, &map->features, map->made - 1);
		if (p->plan->bounded)
			smalti_throttle_task_group(throttle, p->task_group,
						   smalti_vae_tasks_ahead(p->plan->workers, p->maps));
	}
	if (groups && !smalti_task_group_broken(p->task_group))
		smalti_feature_map_merge(p->task_group, &map->features, groups);
	end_sweep(p);
}

void smalti_vae_run(const struct smalti_vae_net *layers, const struct smalti_vae_plan *plan,
		    struct smalti_task_group *task_group, const struct smalti_vae_ends *ends)
{
	struct pass p = {.layers = layers, .plan = plan, .task_group = task_group, .ends = ends};
	p.map = smalti_task_group_calloc(task_group, layers->count + 1, sizeof(*p.map));
	if (!p.map)
		return;
	for (p.target = 0; p.target <= layers->count && !smalti_task_group_broken(task_group); p.target++) {
		p.last = smalti_vae_is_last(layers, plan->storage, p.target);
		if (smalti_vae_is_target(layers, plan->storage, p.target))
			sweep(&p);
	}
	for (int i = 0; i <= layers->count; i++)
		close_map(&p, i);
	free(p.map);
}
