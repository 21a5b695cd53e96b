/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/vae/feature_map.h"
#include "graphs/vae/net.h"
#include "graphs/vae/plan.h"

/* Runs a net of the VAE as its plan says. Every map between two layers is kept whole, offloaded to a file, or
 * recomputed from the last stored one, band by band through windows of a few bands, whenever it is read. That
 * is once for the statistics of every map in between, and once for the next stored map. The tasks on a band
 * are the same in each case, so the bits do not depend on what is stored. */

/* The functions that fill map 0 and take the last map, band by band, in order. */
struct smalti_vae_ends {
	void (*begin)(void *user, struct smalti_task_group *task_group, struct smalti_feature_map *map,
		      int64_t band);
	void (*end)(void *user, struct smalti_task_group *task_group, struct smalti_feature_map *map,
		    int64_t band);
	void *user;
};

void smalti_vae_run(const struct smalti_vae_net *layers, const struct smalti_vae_plan *plan,
		    struct smalti_task_group *task_group, const struct smalti_vae_ends *ends);

/* The epsilon of every GroupNorm in this VAE (docs/reference.md 5.1). */
#define SMALTI_VAE_EPSILON 1e-6

/* Inserts x += O(attention(GroupNorm(x))) for the bodies of x, whole and with known moments: each band's
 * queries against all bands' keys, one head over all positions. */
void smalti_vae_attention(const struct smalti_vae_net *layers, const struct smalti_vae_layer *layer,
			  struct smalti_task_group *task_group, struct smalti_feature_map *x);
