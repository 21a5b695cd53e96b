/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/strategy/cost.h"

#include <math.h>

static const double task_seconds = 15e-6;

/* Counts a branch's parts, which follow each other. */
static int branch_parts(const struct smalti_strategy *strategy)
{
	const int *parts = strategy->parts;
	return parts[SMALTI_AXIS_STAGE] * parts[SMALTI_AXIS_SHARD] * parts[SMALTI_AXIS_RANK];
}

/* Tells whether a place computes in a branch. */
static bool has(const struct smalti_strategy *strategy, int branch, int place)
{
	const int count = branch_parts(strategy);
	for (int part = branch * count; part < (branch + 1) * count; part++)
		if (strategy->place[part % strategy->count] == place)
			return true;
	return false;
}

/* Returns the slowest link into a place: from places that share a branch with it or, with `all`, from all. */
static struct smalti_link_fact link_into(const struct smalti_strategy *strategy,
					 const struct smalti_place_facts *facts, int place, bool all)
{
	struct smalti_link_fact slowest = {(double)INFINITY, 0};
	for (int i = 0; i < strategy->count; i++) {
		const int from = strategy->place[i];
		bool together = all;
		for (int branch = 0; branch < strategy->parts[SMALTI_AXIS_BRANCH]; branch++)
			together = together || (has(strategy, branch, from) && has(strategy, branch, place));
		const struct smalti_link_fact link = facts->link[from * facts->count + place];
		if (from == place || !together)
			continue;
		slowest.bandwidth = fmin(slowest.bandwidth, link.bandwidth);
		slowest.latency = fmax(slowest.latency, link.latency);
	}
	return slowest;
}

static double transfer_seconds(struct smalti_link_fact link, double bytes, double times)
{
	return bytes > 0 ? bytes / link.bandwidth + times * link.latency : 0;
}

/* Returns the seconds that are not hidden. */
static double exposed_seconds(const struct smalti_denoising *denoising,
			      const struct smalti_strategy *strategy, const struct smalti_place_facts *facts,
			      int place, const struct smalti_load *load)
{
	const double *transfers = load->transfers;
	const double rate = facts->place[place].rate, blocks = load->blocks;
	const struct smalti_link_fact near = link_into(strategy, facts, place, false);
	const double layers = transfer_seconds(near, transfers[SMALTI_TRANSFER_KEYS], blocks) +
			      transfer_seconds(near, transfers[SMALTI_TRANSFER_HEADS], blocks) +
			      transfer_seconds(near, transfers[SMALTI_TRANSFER_SUMS], blocks);
	const bool alternates = denoising->branches > 1 && strategy->parts[SMALTI_AXIS_BRANCH] == 1;
	const bool ring = strategy->exchange == SMALTI_EXCHANGE_RING;
	const double hidden = (alternates ? load->flops / 2 : ring ? load->attention : 0) / rate;
	return fmax(layers - hidden, 0) +
	       transfer_seconds(link_into(strategy, facts, place, true),
				transfers[SMALTI_TRANSFER_STREAM] + transfers[SMALTI_TRANSFER_MODULATION], 1);
}

static double seconds_at(const struct smalti_denoising *denoising, const struct smalti_strategy *strategy,
			 const struct smalti_place_facts *facts, int place, const struct smalti_load *load)
{
	return load->flops / facts->place[place].rate + task_seconds * load->operations +
	       exposed_seconds(denoising, strategy, facts, place, load);
}

int smalti_strategy_cost(const struct smalti_denoising *denoising, const struct smalti_strategy *strategy,
			 const struct smalti_place_facts *facts, struct smalti_cost *cost,
			 struct smalti_error *error)
{
	SCOPED(free) struct smalti_load *loads = smalti_calloc(facts->count, sizeof(*loads), error);
	*cost = (struct smalti_cost){0, 0};
	if (!loads ||
	    smalti_denoising_loads(denoising, strategy, !facts->ranks, facts->count, loads, error) < 0)
		return -1;
	for (int i = 0; i < strategy->count; i++) {
		const int place = strategy->place[i];
		const struct smalti_load *load = &loads[place];
		const double bytes = load->weights + load->activations + load->buffers;
		cost->missing += fmax(bytes - (double)facts->place[place].memory, 0);
		cost->seconds = fmax(cost->seconds, seconds_at(denoising, strategy, facts, place, load));
	}
	return 0;
}
