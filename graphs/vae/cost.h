/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/vae/plan.h"

/* The cost of one sweep of smalti_vae_run(), counted by the rules that the sweep follows. */
struct smalti_vae_cost {
	int64_t memory;    /* bytes at most at a time */
	int64_t offloaded; /* bytes in the file at its end */
	double flops, traffic;
	double seconds; /* over all workers */
};

/* Returns the cost of making map `target` when everything stored from map `alive` on is there. Unless `times`
 * is NULL, it counts there how often each map is made. */
struct smalti_vae_cost smalti_vae_sweep_cost(const struct smalti_vae_net *layers,
					     const struct smalti_vae_plan *plan,
					     const struct smalti_vae_budget *budget, int alive, int target,
					     int *times);

/* Returns how many tasks of a sweep of `maps` maps may be inserted and not ended, so that every worker finds
 * one. */
int64_t smalti_vae_tasks_ahead(int workers, int maps);

/* Counts all sweeps of a plan, and sets its predictions for what plan->storage says. SMALTI_EINVAL when no
 * net can run so. */
int smalti_vae_plan_predict(struct smalti_vae_plan *plan, const struct smalti_vae_net *layers,
			    const struct smalti_vae_budget *budget, struct smalti_error *error);
