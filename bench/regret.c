/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/regret.h"

#include <math.h>

/* The schedules between the run and the best one, each after a change. */
enum stage { AS_RUN, AS_TIMED, WITHOUT_MOVES, ORDERED, PLACED, BEST, STAGES };

/* The cause of each change. */
static const enum smalti_regret_cause cause_of[STAGES] = {[AS_TIMED] = SMALTI_REGRET_RUN,
							  [WITHOUT_MOVES] = SMALTI_REGRET_TRANSFER,
							  [ORDERED] = SMALTI_REGRET_ORDER,
							  [PLACED] = SMALTI_REGRET_PLACE,
							  [BEST] = SMALTI_REGRET_TRANSFER};

/* Idle seconds at both ends of a schedule: the means over the workers that have tasks. */
struct ends {
	double start, end;
};

static struct ends ends_of(const struct smalti_task_schedule *run, const struct smalti_timetable *plan)
{
	struct ends ends = {0, 0};
	int workers = 0;
	for (int worker = 0; worker < run->worker_count; worker++) {
		double first = (double)INFINITY, last = 0;
		for (int64_t i = 0; i < plan->count; i++)
			if (plan->worker[i] == worker) {
				first = fmin(first, plan->begin[i]);
				last = fmax(last, plan->end[i]);
			}
		if (isinf(first))
			continue;
		ends.start += first;
		ends.end += plan->makespan - last;
		workers++;
	}
	return (struct ends){ends.start / workers, ends.end / workers};
}

/* Splits the difference of two schedules. */
static void split(const struct smalti_task_schedule *run, const struct smalti_timetable *longer,
		  const struct smalti_timetable *shorter, enum smalti_regret_cause cause,
		  struct smalti_regret *regret)
{
	const struct ends before = ends_of(run, longer), after = ends_of(run, shorter);
	const double start = before.start - after.start, end = before.end - after.end;
	regret->seconds[SMALTI_REGRET_START] += start;
	regret->seconds[SMALTI_REGRET_END] += end;
	regret->seconds[cause] += longer->makespan - shorter->makespan - start - end;
}

/* Times a plan's tasks as they are. */
static struct smalti_timetable *timed(const struct smalti_task_schedule *run,
				      struct smalti_timetable_rules rules,
				      const struct smalti_timetable *plan, struct smalti_error *error)
{
	struct smalti_timetable *copy = smalti_timetable_new(run->count, error);
	struct smalti_timetable_model *model = copy ? smalti_timetable_model_new(run, rules, error) : NULL;
	if (!model) {
		smalti_timetable_free(copy);
		return NULL;
	}
	smalti_timetable_copy(copy, plan);
	smalti_timetable_time(model, copy);
	smalti_timetable_model_free(model);
	return copy;
}

/* Makes the schedules, each from those before it. No schedule takes less than `bound`. */
static int make_stages(const struct smalti_task_schedule *run, double bound,
		       struct smalti_timetable *stages[STAGES], struct smalti_error *error)
{
	static const struct smalti_timetable_rules all = {.moves = true, .insertion = true},
						   without = {.insertion = true};
	if (!(stages[AS_RUN] = smalti_timetable_recorded(run, error)) ||
	    !(stages[AS_TIMED] = timed(run, all, stages[AS_RUN], error)) ||
	    !(stages[WITHOUT_MOVES] = timed(run, without, stages[AS_RUN], error)))
		return -1;
	const struct smalti_timetable *from[] = {stages[WITHOUT_MOVES], NULL};
	stages[ORDERED] =
	    smalti_timetable_search(run, without, stages[AS_RUN]->worker, from, 1, bound, error);
	from[0] = stages[ORDERED];
	stages[PLACED] = from[0] ? smalti_timetable_search(run, without, NULL, from, 1, bound, error) : NULL;
	if (!stages[PLACED])
		return -1;
	from[0] = stages[AS_TIMED], from[1] = stages[PLACED];
	stages[BEST] = run->places == 1 /* there are no moves */
			   ? timed(run, all, stages[PLACED], error)
			   : smalti_timetable_search(run, all, NULL, from, 2, bound, error);
	return stages[BEST] ? 0 : -1;
}

/* Returns the highest of the bounds that count no insertion. */
static double bound_of(const struct smalti_task_schedule *run)
{
	const double known = fmax(fmax(run->area, run->path), run->linear);
	return fmax(fmax(known, run->transfers), smalti_timetable_window(run, false));
}

int smalti_regret_find(const struct smalti_task_schedule *run, struct smalti_regret *regret,
		       struct smalti_error *error)
{
	struct smalti_timetable *stages[STAGES] = {NULL};
	*regret =
	    (struct smalti_regret){.bound = bound_of(run), .inserted = smalti_timetable_window(run, true)};
	int status = make_stages(run, regret->bound, stages, error);
	if (status == 0)
		status = smalti_timetable_check(run, stages[BEST], error);
	for (int stage = AS_TIMED; status == 0 && stage < STAGES; stage++)
		split(run, stages[stage - 1], stages[stage], cause_of[stage], regret);
	if (status == 0) {
		regret->plan = stages[BEST];
		stages[BEST] = NULL;
	}
	for (int stage = 0; stage < STAGES; stage++)
		smalti_timetable_free(stages[stage]);
	return status;
}
