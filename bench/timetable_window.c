/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/timetable.h"
#include "simulation/bounds.h"

#include <math.h>

/* The windows that are tried: pairs of a least time before and a least time behind. */
enum { STEPS = 24 };

struct windows {
	const struct smalti_task_schedule *schedule;
	double *head, *tail; /* of each task: what passes before it and behind it at least */
	double *costs;       /* of the tasks of a window */
	int64_t workers[SMALTI_AREA_KINDS];
};

/* Returns the work of the tasks from `first` to the one before `end`. */
static double work_of(const struct windows *w, int64_t first, int64_t end)
{
	const struct smalti_task_schedule *s = w->schedule;
	return first < end
		   ? smalti_area_bound(s->costs + first * s->places, end - first, s->places, w->workers)
		   : 0;
}

/* Raises the time when the first `count` tasks that ended in the run have ended, by their chains. Returns it.
 */
static double raise_ended(const struct windows *w, const struct smalti_timetable_model *model, int64_t *from,
			  int64_t count, double ended)
{
	for (; *from < count; ++*from) {
		const int64_t task = model->ends[*from];
		ended = fmax(ended, w->head[task] + smalti_schedule_min_cost(w->schedule, task));
	}
	return ended;
}

/* Finds the heads: a task's insertion follows that of the task before it and the end of all those that had
 * ended; where these are all before it, their work has been done. */
static int find_heads(struct windows *w, bool insertion, struct smalti_error *error)
{
	const struct smalti_task_schedule *s = w->schedule;
	struct smalti_timetable_model *model =
	    smalti_timetable_model_new(s, (struct smalti_timetable_rules){.insertion = insertion}, error);
	double inserted = 0, ended = 0, began = 0;
	int64_t first = 0, counted = 0; /* first: the last task that waited for all before it */
	for (int64_t i = 0; model && i < s->count; i++) {
		const int64_t waits = model->waits[i];
		const bool for_all = i > 0 && waits == i;
		ended = raise_ended(w, model, &counted, waits, ended);
		if (for_all)
			ended = fmax(ended, began + work_of(w, first, i));
		inserted = fmax(inserted, ended) + model->pause[i];
		if (for_all) {
			began = inserted;
			first = i;
		}
		w->head[i] = inserted;
		for (int64_t j = 0; j < s->tasks[i].after_count; j++) {
			const int64_t before = s->tasks[i].after[j];
			w->head[i] = fmax(w->head[i], w->head[before] + smalti_schedule_min_cost(s, before));
		}
	}
	smalti_timetable_model_free(model);
	return model ? 0 : -1;
}

static void find_tails(struct windows *w)
{
	const struct smalti_task_schedule *s = w->schedule;
	for (int64_t i = s->count - 1; i >= 0; i--)
		for (int64_t j = 0; j < s->tasks[i].after_count; j++) {
			double *tail = &w->tail[s->tasks[i].after[j]];
			*tail = fmax(*tail, w->tail[i] + smalti_schedule_min_cost(s, i));
		}
}

static double bound_of(const struct windows *w, double head, double tail)
{
	const struct smalti_task_schedule *s = w->schedule;
	int64_t count = 0;
	double least_head = (double)INFINITY, least_tail = (double)INFINITY;
	for (int64_t i = 0; i < s->count; i++) {
		if (w->head[i] < head || w->tail[i] < tail)
			continue;
		memcpy(w->costs + count * s->places, s->costs + i * s->places,
		       (size_t)s->places * sizeof(*w->costs));
		least_head = fmin(least_head, w->head[i]);
		least_tail = fmin(least_tail, w->tail[i]);
		count++;
	}
	return count ? least_head + least_tail + smalti_area_bound(w->costs, count, s->places, w->workers)
		     : 0;
}

static double find_bound(const struct windows *w)
{
	const struct smalti_task_schedule *s = w->schedule;
	double best = 0, longest = 0;
	for (int64_t i = 0; i < s->count; i++)
		longest = fmax(longest, w->head[i] + smalti_schedule_min_cost(s, i) + w->tail[i]);
	for (int head = 0; head < STEPS; head++)
		for (int tail = 0; head + tail < STEPS; tail++)
			best = fmax(best, bound_of(w, longest * head / STEPS, longest * tail / STEPS));
	return fmax(fmax(best, longest), s->places > 1 ? smalti_timetable_links(s, w->tail) : 0);
}

double smalti_timetable_window(const struct smalti_task_schedule *s, bool insertion)
{
	struct windows w = {.schedule = s};
	double bound = (double)NAN;
	w.head = smalti_calloc(s->count, sizeof(*w.head), NULL);
	w.tail = smalti_calloc(s->count, sizeof(*w.tail), NULL);
	w.costs = smalti_calloc(s->count, s->places * (int64_t)sizeof(*w.costs), NULL);
	for (int place = 0; place < s->places && place < SMALTI_AREA_KINDS; place++)
		w.workers[place] = smalti_max(1, s->place_workers[place]);
	if (w.head && w.tail && w.costs && s->places <= SMALTI_AREA_KINDS &&
	    find_heads(&w, insertion, NULL) == 0) {
		find_tails(&w);
		bound = find_bound(&w);
	}
	free(w.head);
	free(w.tail);
	free(w.costs);
	return bound;
}
