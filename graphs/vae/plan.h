/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/offload.h"
#include "graphs/vae/net.h"
#include "rt/grid.h"

/* A plan says of each map of a VAE's net whether it is kept whole, offloaded to a file, or recomputed
 * whenever it is read (docs/reference.md 5.10, 4). The bands fix the arithmetic and so the bits; the rest
 * changes time and memory only. */

enum smalti_storage { SMALTI_RECOMPUTE, SMALTI_KEEP, SMALTI_OFFLOAD, SMALTI_KEEP_BF16, SMALTI_STORAGES };
extern const char *const smalti_storage_names[]; /* NULL past the last */

struct smalti_vae_plan {
	struct smalti_partition partition; /* of map 0 */
	int64_t width;                     /* of map 0 */
	int64_t tallest;                   /* rows of the tallest band */
	int workers;
	bool bounded;   /* keeps to `memory` by inserting tasks only a little ahead of those that run, which
			   delays other insertions */
	int64_t window; /* bands of a map that is not kept: 3 or more */
	enum smalti_storage *storage; /* of each map; the last one is handed on band by band */
	bool bf16;                    /* offloaded maps are rounded to bf16, and others may be kept so */
	int *times;                   /* how often each map is made: read if it is stored, else computed */
	struct smalti_offload *file;  /* where maps are offloaded, not owned; NULL: no map is */
	int64_t memory;    /* bytes held at most in maps, transient weights and the kernels' scratch */
	int64_t offloaded; /* bytes in the file at most */
	int64_t workspace; /* bytes of `memory` that are the workers' own */
	double flops;      /* of all sweeps */
	double seconds;    /* at the budget's speeds */
};

struct smalti_vae_budget {
	int64_t memory;  /* for what plan->memory counts; INT64_MAX: no bound */
	int64_t scratch; /* for plan->offloaded */
	int64_t at_once; /* bytes; a plan whose maps together take no more is not bounded */
	int workers;
	bool bf16;                      /* stored maps may be rounded; then the bits depend on the plan */
	const double *seconds_per_flop; /* of one worker, for each layer; NULL: an ordinary CPU's */
};

/* Returns a budget without bounds, for so many workers: no map is made twice. */
struct smalti_vae_budget smalti_vae_no_budget(int workers);

/* Opens a plan of the partition, which is copied, that stores nothing yet; -1 with an error. */
int smalti_vae_plan_open(struct smalti_vae_plan *plan, const struct smalti_vae_net *layers,
			 const struct smalti_partition *partition, int64_t width,
			 const struct smalti_vae_budget *budget, struct smalti_error *error);
void smalti_vae_plan_free(struct smalti_vae_plan *plan);

/* Tells whether the sweep that makes the map inside a resnet, `inner`, begins its end: the shortcut of x. x
 * goes band by band meanwhile, so x and the result are never whole together. */
bool smalti_vae_early_residual(const struct smalti_vae_net *layers, const enum smalti_storage *storage,
			       int inner);
/* Tells whether a sweep makes all bands of this map: to store it, to hand it on, or for its statistics. */
bool smalti_vae_is_target(const struct smalti_vae_net *layers, const enum smalti_storage *storage, int map);
/* Tells whether nothing before this map is read again after the sweep that makes it. */
bool smalti_vae_is_last(const struct smalti_vae_net *layers, const enum smalti_storage *storage, int map);

/* Tells whether a map is always kept: both sides of the attention, and an input that comes once. */
bool smalti_vae_has_to_be_kept(const struct smalti_vae_net *layers, int map);
bool smalti_vae_may_be_stored(const struct smalti_vae_net *layers, int map);

/* Makes the fastest plan within the budget. If there is none, SMALTI_ENOMEM: then plan->memory is the least
 * that would suffice with that scratch, and the message says it. */
int smalti_vae_plan_make(struct smalti_vae_plan *plan, const struct smalti_vae_net *net,
			 const struct smalti_partition *partition, int64_t width,
			 const struct smalti_vae_budget *budget, struct smalti_error *error);
/* Plans a latent [height, width] in bands of `band_rows` of its rows. */
int smalti_vae_net_plan(const struct smalti_vae_net *net, int64_t height, int64_t width, int64_t band_rows,
			const struct smalti_vae_budget *budget, struct smalti_vae_plan *plan,
			struct smalti_error *error);
