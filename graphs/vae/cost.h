/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/vae/plan.h"

/* What one sweep of smalti_vae_run() takes, counted by the rules that it runs by. */
struct smalti_vae_cost {
	int64_t memory;    /* at most at a time */
	int64_t offloaded; /* in the file at its end */
	double flops, traffic;
	double seconds; /* over all workers */
};

/* The sweep that makes map `target` when everything stored from map `alive` on is there; unless `times` is
 * NULL, it counts there how often each map is made. */
struct smalti_vae_cost smalti_vae_sweep_cost(const struct smalti_vae_net *layers,
					     const struct smalti_vae_plan *plan,
					     const struct smalti_vae_budget *budget, int alive, int target,
					     int *times);

/* How many tasks of a sweep that makes `maps` maps are inserted before those that have ended, so that every
 * worker finds one; and how many bands of a kept map that is at most. */
int64_t smalti_vae_tasks_ahead(int workers, int maps);

/* All sweeps of a plan: its predictions for what plan->storage says. SMALTI_EINVAL when no net can run so.
 */
int smalti_vae_plan_predict(struct smalti_vae_plan *plan, const struct smalti_vae_net *layers,
			    const struct smalti_vae_budget *budget, struct smalti_error *error);
