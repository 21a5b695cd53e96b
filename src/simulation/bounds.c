/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/bounds.h"

#include <math.h>

enum { ROUNDS = 200 };

/* Returns Σ of the least weight · cost; adds each kind's part of the work to loads. With weights that sum to
 * 1 over all workers this is the dual of sharing tasks among workers in any fractions: at most the best
 * schedule's time. */
static double dual(const double *costs, int64_t tasks, int kinds, const int64_t *counts,
		   const double *weights, double *loads)
{
	int first = 0;
	while (counts[first] == 0)
		first++;
	double sum = 0;
	for (int64_t task = 0; task < tasks; task++) {
		int best = first;
		for (int kind = first + 1; kind < kinds; kind++)
			if (counts[kind] > 0 && weights[kind] * costs[task * kinds + kind] <
						    weights[best] * costs[task * kinds + best])
				best = kind;
		sum += weights[best] * costs[task * kinds + best];
		loads[best] += costs[task * kinds + best];
	}
	return sum;
}

/* Scales the weights to a sum of 1 over all workers. */
static void scale(double *weights, int kinds, const int64_t *counts)
{
	double sum = 0;
	for (int kind = 0; kind < kinds; kind++)
		sum += weights[kind] * (double)counts[kind];
	for (int kind = 0; kind < kinds; kind++)
		weights[kind] /= sum;
}

double smalti_area_bound(const double *costs, int64_t tasks, int kinds, const int64_t *counts)
{
	double weights[SMALTI_AREA_KINDS] = {0}, best = 0;
	int there = 0;
	for (int kind = 0; kind < kinds; kind++) {
		weights[kind] = 1;
		there += counts[kind] > 0;
	}
	if (there == 0)
		return 0;
	for (int round = 0; round < ROUNDS; round++) {
		double loads[SMALTI_AREA_KINDS] = {0};
		scale(weights, kinds, counts);
		best = fmax(best, dual(costs, tasks, kinds, counts, weights, loads));
		/* the weight of a kind with more than its share rises */
		double mean = 0;
		for (int kind = 0; kind < kinds; kind++)
			mean += counts[kind] > 0 ? loads[kind] / (double)counts[kind] / there : 0;
		for (int kind = 0; kind < kinds && mean > 0; kind++)
			if (counts[kind] > 0)
				weights[kind] *=
				    exp((loads[kind] / (double)counts[kind] / mean - 1) / (1 + 0.5 * round));
	}
	return best;
}
