/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae/cost.h"
#include "kernels/conv.h"

#include <math.h>

/* Used if the budget has no measurement. */
static const double seconds_per_flop = 1 / 1.5e11, seconds_per_byte = 1 / 5e8;

enum { TASKS_EACH = 3 }; /* for each worker, and for each map on the way to the target */

int64_t smalti_vae_tasks_ahead(int workers, int maps)
{
	return TASKS_EACH * (workers + (int64_t)maps - 1);
}

/* Returns how many bands of a kept map these tasks make at most. */
static int64_t bands_ahead(int workers, int maps)
{
	return maps > 1 ? workers + TASKS_EACH : TASKS_EACH * (int64_t)workers + 1;
}

/* A sweep whose cost is counted. */
struct sweep {
	const struct smalti_vae_net *layers;
	const struct smalti_vae_plan *plan;
	const struct smalti_vae_budget *budget;
	int alive, target;
	bool last;
	struct smalti_vae_cost cost;
	int64_t growing, dropping; /* bytes of kept maps that come and go band by band */
	int64_t bands;             /* a band of each of those maps */
	int made;                  /* maps that are made */
	int *times;                /* how often each map is made, or NULL */
};

/* Returns the rows of the tallest band. */
static int64_t band_rows(const struct sweep *s, int map)
{
	return s->plan->tallest * s->layers->map[map].up / s->layers->map[map].down;
}

static int64_t row_bytes(const struct sweep *s, int map)
{
	const struct smalti_vae_shape *shape = &s->layers->map[map];
	return s->plan->width * shape->up / shape->down * shape->channels * (int64_t)sizeof(float);
}

/* Returns the bytes of the tallest band with its edges. */
static int64_t band_bytes(const struct sweep *s, int map)
{
	return (band_rows(s, map) + 2) * row_bytes(s, map);
}

static int64_t body_bytes(const struct sweep *s, int map)
{
	const struct smalti_vae_shape *shape = &s->layers->map[map];
	return s->plan->partition.first[s->plan->partition.bands] * shape->up / shape->down *
	       row_bytes(s, map);
}

/* Returns the bytes of a map in the file, or in bf16. */
static int64_t stored_bytes(const struct sweep *s, int map)
{
	return s->plan->bf16 ? body_bytes(s, map) / 2 : body_bytes(s, map);
}

static int64_t edge_bytes(const struct sweep *s, int map)
{
	return 2 * s->plan->partition.bands * row_bytes(s, map);
}

static int64_t window_bytes(const struct sweep *s, int map)
{
	return smalti_min(s->plan->window, s->plan->partition.bands) * band_bytes(s, map);
}

static bool stored(const struct sweep *s, int map)
{
	return s->plan->storage[map] != SMALTI_RECOMPUTE;
}

/* Counts a kept map that the sweep makes or drops, band by band. */
static void comes_or_goes(struct sweep *s, int64_t *direction, int map)
{
	*direction += body_bytes(s, map);
	s->cost.memory += edge_bytes(s, map);
	s->bands += band_bytes(s, map);
}

static void hold(struct sweep *s, int map)
{
	s->cost.memory += body_bytes(s, map) + edge_bytes(s, map);
}

static bool hands_over(const struct sweep *s, int x)
{
	return s->last && s->plan->storage[x] == SMALTI_KEEP && !s->layers->layer[x + 1].linear.weight;
}

/* Counts the map that is made, and the end of its resnet if that is begun early. */
static void count_target(struct sweep *s)
{
	const enum smalti_storage *storage = s->plan->storage;
	const int t = s->target;
	if (storage[t] == SMALTI_KEEP_BF16)
		s->growing += stored_bytes(s, t);
	if (storage[t] != SMALTI_KEEP)
		s->cost.memory += window_bytes(s, t);
	else if (t > 0 && smalti_vae_early_residual(s->layers, storage, t - 1))
		hold(s, t);
	else
		comes_or_goes(s, &s->growing, t);
	if (!smalti_vae_early_residual(s->layers, storage, t))
		return;
	if (hands_over(s, t - 1))
		hold(s, t + 1);
	else
		comes_or_goes(s, &s->growing, t + 1);
}

/* Counts a map before the target: `read` or made on the way, or only there. */
static void count_source(struct sweep *s, int map, bool read)
{
	const enum smalti_storage storage = s->plan->storage[map];
	if (storage == SMALTI_KEEP) {
		const bool body_goes_on = map == s->target - 1 && hands_over(s, map) &&
					  smalti_vae_early_residual(s->layers, s->plan->storage, s->target);
		if (body_goes_on)
			s->cost.memory += edge_bytes(s, map);
		else if (s->last)
			comes_or_goes(s, &s->dropping, map);
		else
			hold(s, map);
		return;
	}
	if (storage == SMALTI_KEEP_BF16)
		*(s->last ? &s->dropping : &s->cost.memory) += stored_bytes(s, map);
	if (read)
		s->cost.memory += window_bytes(s, map);
	if (read && storage == SMALTI_OFFLOAD)
		s->cost.traffic += (double)stored_bytes(s, map);
}

static int64_t transient(const struct sweep *s, int layer)
{
	const struct smalti_kernel *kernel = &s->layers->layer[layer].kernel;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (!s->layers->weights->transient || !kernel->weight)
		return 0;
	return smalti_conv_packed_bytes(kernel->in, kernel->out, kernel->stride, s->layers->compute, &error);
}

/* Returns a worker's share. Bands are whole, and convolutions compute rows by fours. */
static double share(const struct sweep *s, int map)
{
	enum { TOGETHER = 4 };
	const int64_t bands = s->plan->partition.bands, rows = band_rows(s, map),
		      workers = s->budget->workers;
	const int64_t turns = (bands + workers - 1) / workers;
	const int64_t padded = (rows + TOGETHER - 1) / TOGETHER * TOGETHER;
	return (double)turns / (double)bands * (double)padded / (double)rows;
}

static void count_work(struct sweep *s, int map)
{
	const double pixels =
	    (double)s->plan->partition.first[s->plan->partition.bands] * (double)s->plan->width;
	const double flops = smalti_vae_layer_flops(s->layers, map - 1, pixels);
	const double *measured = s->budget->seconds_per_flop;
	s->made++;
	if (s->times)
		s->times[map]++;
	s->cost.flops += flops;
	s->cost.seconds += flops * (measured ? measured[map - 1] : seconds_per_flop) * share(s, map);
}

/* Counts the queries, keys and values beside the map, and what workers hold of a band. */
static void count_attention(struct sweep *s)
{
	const int map = s->target;
	const int64_t element = smalti_dtype_bytes(s->layers->compute), size = (int64_t)sizeof(float);
	s->cost.memory = body_bytes(s, map) + 2 * edge_bytes(s, map) +
			 3 * body_bytes(s, map) / size * element + s->budget->workers * band_bytes(s, map) +
			 s->plan->workspace;
	count_work(s, map);
}

/* Walks down from the target over the maps that have to be made for it. */
static void count_layers(struct sweep *s)
{
	bool read[2] = {true, false}; /* whether maps `map` and `map` − 1 are read */
	int64_t weights = 0;
	for (int map = s->target; map >= s->alive; map--) {
		const bool made = map == s->target || (read[0] && !stored(s, map));
		bool reads_x = false;
		if (map == s->target)
			count_target(s);
		else if (read[0] || stored(s, map))
			count_source(s, map, read[0]);
		if (made && map > 0) {
			reads_x = s->layers->layer[map - 1].kind == SMALTI_VAE_RESIDUAL &&
				  !smalti_vae_early_residual(s->layers, s->plan->storage, map - 1);
			count_work(s, map);
			weights += transient(s, map - 1);
		}
		read[0] = made || read[1];
		read[1] = reads_x;
	}
	s->cost.memory += s->plan->workspace + weights;
}

static void count_file(struct sweep *s)
{
	for (int map = s->alive; map <= s->target; map++)
		if (s->plan->storage[map] == SMALTI_OFFLOAD)
			s->cost.offloaded += stored_bytes(s, map);
	if (s->plan->storage[s->target] == SMALTI_OFFLOAD)
		s->cost.traffic += (double)stored_bytes(s, s->target);
}

/* Returns the time of a sweep. Workers compute while the system writes and reads the file, so a prediction
 * has the longer time of both. A plan is chosen by their sum: what a disk reaches is not known then. */
static double sweep_seconds(const struct sweep *s)
{
	const double traffic = s->cost.traffic * seconds_per_byte;
	return s->budget->seconds_per_flop ? fmax(s->cost.seconds, traffic) : s->cost.seconds + traffic;
}

struct smalti_vae_cost smalti_vae_sweep_cost(const struct smalti_vae_net *layers,
					     const struct smalti_vae_plan *plan,
					     const struct smalti_vae_budget *budget, int alive, int target,
					     int *times)
{
	struct sweep s = {.layers = layers,
			  .plan = plan,
			  .budget = budget,
			  .alive = alive,
			  .target = target,
			  .times = times};
	s.last = smalti_vae_is_last(layers, plan->storage, target);
	if (target > 0 && layers->layer[target - 1].kind == SMALTI_VAE_ATTENTION) {
		count_attention(&s);
		return s.cost;
	}
	count_layers(&s);
	count_file(&s);
	const int64_t ahead = bands_ahead(budget->workers, s.made) * s.bands;
	const int64_t both = s.growing + s.dropping;
	const int64_t steady = smalti_max(s.growing, s.dropping) + ahead;
	s.cost.memory += smalti_min(steady, both);
	s.cost.seconds = sweep_seconds(&s);
	return s.cost;
}

static int check_storage(const struct smalti_vae_plan *plan, const struct smalti_vae_net *l,
			 struct smalti_error *error)
{
	for (int map = 0; map <= l->count; map++) {
		const bool kept = plan->storage[map] == SMALTI_KEEP;
		const bool rounded = plan->storage[map] == SMALTI_KEEP_BF16 && !plan->bf16;
		if (rounded || (smalti_vae_has_to_be_kept(l, map) && !kept) ||
		    (!smalti_vae_may_be_stored(l, map) && plan->storage[map] != SMALTI_RECOMPUTE))
			return smalti_fail(error, SMALTI_EINVAL, "map %d of %d of the VAE cannot be '%s'",
					   map, l->count, smalti_storage_names[plan->storage[map]]);
	}
	return 0;
}

/* Returns the bytes of every stored map and every window, as if nothing were released before the end. */
static int64_t all_at_once(const struct smalti_vae_plan *plan, const struct smalti_vae_net *l,
			   const struct smalti_vae_budget *budget)
{
	const struct sweep s = {.layers = l, .plan = plan, .budget = budget};
	int64_t bytes = plan->workspace;
	for (int map = 0; map <= l->count; map++) {
		const bool attention = map > 0 && l->layer[map - 1].kind == SMALTI_VAE_ATTENTION;
		bytes += plan->storage[map] == SMALTI_KEEP ? body_bytes(&s, map) + edge_bytes(&s, map)
							   : stored_bytes(&s, map) + window_bytes(&s, map);
		bytes += attention ? 3 * body_bytes(&s, map) : 0;
		bytes += map > 0 ? transient(&s, map - 1) : 0;
	}
	return bytes;
}

int smalti_vae_plan_predict(struct smalti_vae_plan *plan, const struct smalti_vae_net *l,
			    const struct smalti_vae_budget *budget, struct smalti_error *error)
{
	if (check_storage(plan, l, error) < 0)
		return -1;
	plan->memory = plan->offloaded = 0;
	memset(plan->times, 0, (size_t)(l->count + 1) * sizeof(*plan->times));
	plan->flops = plan->seconds = 0;
	for (int map = 0, alive = 0; map <= l->count; map++) {
		if (!smalti_vae_is_target(l, plan->storage, map))
			continue;
		const struct smalti_vae_cost cost =
		    smalti_vae_sweep_cost(l, plan, budget, alive, map, plan->times);
		plan->memory = smalti_max(cost.memory, plan->memory);
		plan->offloaded = smalti_max(cost.offloaded, plan->offloaded);
		plan->flops += cost.flops;
		plan->seconds += cost.seconds;
		if (smalti_vae_is_last(l, plan->storage, map))
			alive = map;
	}
	const int64_t bytes = all_at_once(plan, l, budget);
	plan->bounded = budget->memory < INT64_MAX && bytes > budget->at_once;
	if (bytes <= budget->at_once)
		plan->memory = bytes;
	return 0;
}
