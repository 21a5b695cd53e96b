/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/schedule.h"
#include "bench/schedule_linear.h"
#include "simulation/bounds.h"

#include <math.h>

enum { MAX_PLACES = SMALTI_AREA_KINDS };

double smalti_schedule_min_cost(const struct smalti_task_schedule *s, int64_t task)
{
	double least = (double)INFINITY;
	for (int place = 0; place < s->places; place++)
		least = fmin(least, s->costs[task * s->places + place]);
	return least;
}

/* Finds the longest chain, with each task where it is fastest. */
static int find_path(struct smalti_task_schedule *s, struct smalti_error *error)
{
	SCOPED(free) double *end = smalti_calloc(s->count, sizeof(*end), error);
	for (int64_t i = 0; end && i < s->count; i++) {
		for (int64_t j = 0; j < s->tasks[i].after_count; j++)
			end[i] = fmax(end[i], end[s->tasks[i].after[j]]);
		end[i] += smalti_schedule_min_cost(s, i);
		s->path = fmax(s->path, end[i]);
	}
	return end ? 0 : -1;
}

int smalti_schedule_bound(struct smalti_task_schedule *s, struct smalti_error *error)
{
	int64_t counts[MAX_PLACES];
	if (s->places > MAX_PLACES)
		return smalti_fail(error, SMALTI_EUNSUPPORTED, "%d places; expected %d at most", s->places,
				   MAX_PLACES);
	for (int place = 0; place < s->places; place++)
		counts[place] = smalti_max(1, s->place_workers[place]);
	s->area = smalti_area_bound(s->costs, s->count, s->places, counts);
	if (find_path(s, error) < 0)
		return -1;
	s->linear = smalti_schedule_linear(s);
	return 0;
}
