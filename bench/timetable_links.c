/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/timetable.h"
#include "simulation/bounds.h"

#include <math.h>

enum { ROUNDS = 300, RESOURCES = 2 * SMALTI_AREA_KINDS };

/* What tasks share: the workers of each place, then the links that bring weights to each device; the link of
 * place 0 is that out of main memory. */
struct shared {
	const struct smalti_task_schedule *schedule;
	double price[RESOURCES], load[RESOURCES], capacity[RESOURCES];
	int count;
};

/* Returns what a task costs at a place by the prices. */
static double cost_of(const struct shared *shared, int64_t task, int place)
{
	const struct smalti_task_schedule *s = shared->schedule;
	const double *price = shared->price, *link = price + s->places;
	const double cost = price[place] * s->costs[task * s->places + place];
	return place == 0 || isinf(cost) ? cost : cost + (link[0] + link[place]) * s->weights[task];
}

/* Adds a task to the loads of the place where it costs least. Returns the cost. */
static double add_task(struct shared *shared, int64_t task)
{
	const struct smalti_task_schedule *s = shared->schedule;
	double best = (double)INFINITY;
	int at = -1;
	for (int place = 0; place < s->places; place++) {
		const double cost = isinf(s->costs[task * s->places + place]) ? (double)INFINITY
									      : cost_of(shared, task, place);
		if (cost < best) {
			best = cost;
			at = place;
		}
	}
	shared->load[at] += s->costs[task * s->places + at];
	if (at > 0) {
		shared->load[s->places] += s->weights[task];
		shared->load[s->places + at] += s->weights[task];
	}
	return best;
}

/* Scales the prices so that all that is shared costs 1 a second. */
static void scale(struct shared *shared)
{
	double sum = 0;
	for (int i = 0; i < shared->count; i++)
		sum += shared->price[i] * shared->capacity[i];
	for (int i = 0; i < shared->count; i++)
		shared->price[i] /= sum;
}

/* Raises the price of what is used for longer than the mean. */
static void reprice(struct shared *shared, int round)
{
	double mean = 0;
	for (int i = 0; i < shared->count; i++)
		mean += shared->load[i] / shared->capacity[i] / shared->count;
	for (int i = 0; i < shared->count && mean > 0; i++)
		shared->price[i] *=
		    exp((shared->load[i] / shared->capacity[i] / mean - 1) / (2 + 0.5 * round));
}

static double bound_of(struct shared *shared, const double *tail, double from)
{
	const struct smalti_task_schedule *s = shared->schedule;
	double best = 0, least_tail = (double)INFINITY;
	for (int i = 0; i < shared->count; i++)
		shared->price[i] = 1 / shared->capacity[i];
	for (int round = 0; round < ROUNDS; round++) {
		double sum = 0;
		scale(shared);
		memset(shared->load, 0, sizeof(shared->load));
		for (int64_t i = 0; i < s->count; i++)
			if (tail[i] >= from) {
				sum += add_task(shared, i);
				least_tail = fmin(least_tail, tail[i]);
			}
		best = fmax(best, sum);
		reprice(shared, round);
	}
	return isinf(least_tail) ? 0 : best + least_tail;
}

/* Sets what there is to share; false: there are no links. */
static bool open_shared(struct shared *shared)
{
	const struct smalti_task_schedule *s = shared->schedule;
	shared->count = 2 * s->places;
	for (int place = 0; place < s->places; place++) {
		shared->capacity[place] = (double)smalti_max(1, s->place_workers[place]);
		shared->capacity[s->places + place] = smalti_schedule_weights_rate(s, place);
		if (shared->capacity[s->places + place] <= 0)
			return false;
	}
	return s->places <= SMALTI_AREA_KINDS;
}

double smalti_timetable_links(const struct smalti_task_schedule *s, const double *tail)
{
	enum { STEPS = 24 };
	struct shared shared = {.schedule = s};
	double best = 0, longest = 0;
	if (!open_shared(&shared))
		return 0;
	for (int64_t i = 0; i < s->count; i++)
		longest = fmax(longest, tail[i]);
	for (int step = 0; step < STEPS; step++)
		best = fmax(best, bound_of(&shared, tail, longest * step / STEPS));
	return best;
}
