/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/vae/cost.h"
#include "graphs/vae/plan.h"

#include <math.h>

/* The best way to have a map stored as the latest, and nothing before it. The search goes from map to map. */
struct way {
	double seconds; /* INFINITY: none */
	int64_t memory;
	int from;                                /* the stored map before */
	enum smalti_storage from_storage, inner; /* `inner`: of the map before this one */
};

struct search {
	const struct smalti_vae_net *layers;
	const struct smalti_vae_budget *budget;
	struct smalti_vae_plan *plan; /* its storage is tried out */
	struct way *way;              /* [map][storage] */
	bool min_memory;              /* search the least memory, not the least time within the budget */
};

static struct way *way_to(const struct search *s, int map, enum smalti_storage storage)
{
	return &s->way[map * SMALTI_STORAGES + (int)storage];
}

static bool better(const struct search *s, const struct way *a, const struct way *b)
{
	if (s->min_memory && a->memory != b->memory)
		return a->memory < b->memory;
	return a->seconds < b->seconds;
}

/* Tries the step from one stored map to the next, with what plan->storage says of those between. */
static void try_step(struct search *s, int from, int to)
{
	enum smalti_storage *storage = s->plan->storage;
	const struct way *before = way_to(s, from, storage[from]);
	struct way way = {.seconds = before->seconds,
			  .memory = before->memory,
			  .from = from,
			  .from_storage = storage[from],
			  .inner = from < to - 1 ? storage[to - 1] : SMALTI_RECOMPUTE};
	for (int map = from + 1; map <= to && way.seconds < (double)INFINITY; map++) {
		if (!smalti_vae_is_target(s->layers, storage, map))
			continue;
		const struct smalti_vae_cost cost =
		    smalti_vae_sweep_cost(s->layers, s->plan, s->budget, from, map, NULL);
		way.seconds += cost.seconds;
		way.memory = cost.memory > way.memory ? cost.memory : way.memory;
		if (cost.offloaded > s->budget->scratch ||
		    (!s->min_memory && cost.memory > s->budget->memory))
			way.seconds = (double)INFINITY;
	}
	struct way *best = way_to(s, to, storage[to]);
	if (way.seconds < (double)INFINITY && (best->seconds >= (double)INFINITY || better(s, &way, best)))
		*best = way;
}

/* Stores the map inside a resnet, too, if its source is stored. */
static void try_inner(struct search *s, int from, int to)
{
	enum smalti_storage *storage = s->plan->storage;
	if (s->layers->layer[to - 1].kind != SMALTI_VAE_RESIDUAL || from == to - 1)
		return;
	for (enum smalti_storage inner = SMALTI_KEEP; inner < SMALTI_STORAGES; inner++) {
		if ((inner == SMALTI_KEEP ? storage[to] != SMALTI_KEEP : from != to - 2) ||
		    (inner == SMALTI_KEEP_BF16 && !s->budget->bf16))
			continue;
		storage[to - 1] = inner;
		try_step(s, from, to);
	}
	storage[to - 1] = SMALTI_RECOMPUTE;
}

static void try_steps_from(struct search *s, int from)
{
	const struct smalti_vae_net *l = s->layers;
	enum smalti_storage *storage = s->plan->storage;
	for (int to = from + 1; to <= l->count; to++) {
		const bool inner = to < l->count && l->layer[to].kind == SMALTI_VAE_RESIDUAL;
		const bool end = to == l->count;
		for (enum smalti_storage at = SMALTI_RECOMPUTE; at < SMALTI_STORAGES && !inner; at++) {
			if ((at == SMALTI_RECOMPUTE) != end ||
			    (at > SMALTI_KEEP && smalti_vae_has_to_be_kept(l, to)) ||
			    (at == SMALTI_KEEP_BF16 && !s->budget->bf16))
				continue;
			storage[to] = at;
			try_step(s, from, to);
			try_inner(s, from, to);
			storage[to] = SMALTI_RECOMPUTE;
		}
		if (smalti_vae_has_to_be_kept(l, to))
			return; /* such a map is never skipped */
	}
}

static bool find_ways(struct search *s)
{
	const int maps = s->layers->count + 1;
	const enum smalti_storage input =
	    s->layers->direction == SMALTI_VAE_ENCODE ? SMALTI_KEEP : SMALTI_RECOMPUTE;
	for (int i = 0; i < maps * SMALTI_STORAGES; i++)
		s->way[i] = (struct way){.seconds = (double)INFINITY};
	memset(s->plan->storage, 0, (size_t)maps * sizeof(*s->plan->storage));
	*way_to(s, 0, input) = (struct way){.seconds = 0};
	for (int map = 0; map < maps - 1; map++)
		for (enum smalti_storage at = SMALTI_RECOMPUTE; at < SMALTI_STORAGES; at++)
			if (way_to(s, map, at)->seconds < (double)INFINITY) {
				s->plan->storage[map] = at;
				try_steps_from(s, map);
				s->plan->storage[map] = SMALTI_RECOMPUTE;
			}
	return way_to(s, maps - 1, SMALTI_RECOMPUTE)->seconds < (double)INFINITY;
}

/* Takes the best way, from the end back. */
static void take_way(struct search *s)
{
	enum smalti_storage at = SMALTI_RECOMPUTE;
	for (int map = s->layers->count; map > 0;) {
		const struct way *way = way_to(s, map, at);
		s->plan->storage[map] = at;
		if (map - 1 > way->from)
			s->plan->storage[map - 1] = way->inner;
		map = way->from;
		at = way->from_storage;
	}
	s->plan->storage[0] = at;
}

int smalti_vae_plan_make(struct smalti_vae_plan *plan, const struct smalti_vae_net *l,
			 const struct smalti_partition *partition, int64_t width,
			 const struct smalti_vae_budget *budget, struct smalti_error *error)
{
	struct search s = {.layers = l, .budget = budget, .plan = plan};
	if (smalti_vae_plan_open(plan, l, partition, width, budget, error) < 0)
		return -1;
	s.way = smalti_calloc((l->count + 1) * SMALTI_STORAGES, sizeof(*s.way), error);
	if (!s.way) {
		smalti_vae_plan_free(plan);
		return -1;
	}
	const bool fits = find_ways(&s);
	if (!fits) {
		s.min_memory = true;
		find_ways(&s); /* recomputing everything is always possible */
	}
	take_way(&s);
	free(s.way);
	if (smalti_vae_plan_predict(plan, l, budget, error) < 0)
		return -1;
	if (fits)
		return 0;
	return smalti_fail(
	    error, SMALTI_ENOMEM,
	    "the VAE's maps take %lld MB at least, and %lld MB may be used: allow more memory, "
	    "or scratch space on a disk",
	    (long long)(plan->memory >> 20) + 1, (long long)(budget->memory >> 20));
}

int smalti_vae_net_plan(const struct smalti_vae_net *net, int64_t height, int64_t width, int64_t band_rows,
			const struct smalti_vae_budget *budget, struct smalti_vae_plan *plan,
			struct smalti_error *error)
{
	const int64_t scale = net->direction == SMALTI_VAE_ENCODE ? smalti_vae_factor(&net->config) : 1;
	struct smalti_partition latent = {0}, input = {0};
	int status = -1;
	*plan = (struct smalti_vae_plan){0};
	if (smalti_partition_even(&latent, height, band_rows, error) == 0 &&
	    smalti_partition_scale(&input, &latent, scale, 1, error) == 0)
		status = smalti_vae_plan_make(plan, net, &input, scale * width, budget, error);
	smalti_partition_free(&latent);
	smalti_partition_free(&input);
	return status;
}
