/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/plan_strategy.h"
#include "ranks/ranks.h"

#include <math.h>

int smalti_plan_place_count(const struct smalti_plan *plan)
{
	return plan->strategy.count ? smalti_session_place_count(plan->model->session) : 1;
}

/* Counts the last pass at a place, with the most bytes that the place holds in any pass. */
static int load_at(const struct smalti_plan *plan, int place, struct smalti_load *all,
		   struct smalti_error *error)
{
	const struct smalti_denoising denoising = smalti_plan_denoising(plan);
	const int places = smalti_plan_place_count(plan);
	SCOPED(free) struct smalti_load *loads = smalti_calloc(places, sizeof(*loads), error);
	*all = (struct smalti_load){.flops = 0};
	for (const struct smalti_strategy *cut = &plan->strategy; cut; cut = cut->next) {
		if (!loads || smalti_denoising_loads(&denoising, cut, smalti_ranks_count() == 1, places,
						     loads, error) < 0)
			return -1;
		struct smalti_load *load = &loads[place];
		load->weights = fmax(load->weights, all->weights);
		load->activations = fmax(load->activations, all->activations);
		load->buffers = fmax(load->buffers, all->buffers);
		*all = *load;
	}
	return 0;
}

int smalti_plan_load(const struct smalti_plan *plan, int place, struct smalti_place_load *load,
		     struct smalti_error *error)
{
	SMALTI_REPORT(error);
	const bool placed = plan->strategy.count > 0;
	struct smalti_load all;
	if (smalti_check_range(place, 0, smalti_plan_place_count(plan) - 1, "place", error) < 0 ||
	    load_at(plan, place, &all, error) < 0)
		return -1;
	*load = (struct smalti_place_load){.name = "any place",
					   .flops = all.flops,
					   .keys = all.transfers[SMALTI_TRANSFER_KEYS],
					   .heads = all.transfers[SMALTI_TRANSFER_HEADS],
					   .sums = all.transfers[SMALTI_TRANSFER_SUMS],
					   .stream = all.transfers[SMALTI_TRANSFER_STREAM],
					   .modulation = all.transfers[SMALTI_TRANSFER_MODULATION],
					   .weights = all.weights,
					   .activations = all.activations,
					   .buffers = all.buffers};
	_Static_assert(sizeof(load->name) == SMALTI_WORKER_NAME, "a place has a worker's name");
	if (placed)
		smalti_session_place_name(plan->model->session, place, load->name);
	return 0;
}
