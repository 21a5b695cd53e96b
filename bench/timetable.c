/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/timetable.h"
#include "simulation/schedule_file.h"

struct smalti_timetable *smalti_timetable_new(int64_t count, struct smalti_error *error)
{
	struct smalti_timetable *plan = smalti_calloc(1, sizeof(*plan), error);
	if (!plan)
		return NULL;
	plan->sequence = smalti_calloc(count, sizeof(*plan->sequence), error);
	plan->worker = smalti_calloc(count, sizeof(*plan->worker), error);
	plan->begin = smalti_calloc(count, sizeof(*plan->begin), error);
	plan->end = smalti_calloc(count, sizeof(*plan->end), error);
	if (plan->sequence && plan->worker && plan->begin && plan->end)
		return plan;
	smalti_timetable_free(plan);
	return NULL;
}

void smalti_timetable_copy(struct smalti_timetable *to, const struct smalti_timetable *from)
{
	const size_t count = (size_t)from->count;
	to->count = from->count;
	to->makespan = from->makespan;
	memcpy(to->sequence, from->sequence, count * sizeof(*to->sequence));
	memcpy(to->worker, from->worker, count * sizeof(*to->worker));
	memcpy(to->begin, from->begin, count * sizeof(*to->begin));
	memcpy(to->end, from->end, count * sizeof(*to->end));
}

void smalti_timetable_free(struct smalti_timetable *plan)
{
	if (!plan)
		return;
	free(plan->sequence);
	free(plan->worker);
	free(plan->begin);
	free(plan->end);
	free(plan);
}

static int by_begin(const void *a, const void *b, void *begins)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	const double *begin = begins;
	return begin[x] != begin[y] ? (begin[x] > begin[y]) - (begin[x] < begin[y]) : (x > y) - (x < y);
}

struct smalti_timetable *smalti_timetable_recorded(const struct smalti_task_schedule *s,
						   struct smalti_error *error)
{
	struct smalti_timetable *plan = smalti_timetable_new(s->count, error);
	if (!plan)
		return NULL;
	plan->count = s->count;
	plan->makespan = s->makespan;
	for (int64_t i = 0; i < s->count; i++) {
		plan->sequence[i] = i;
		plan->worker[i] = s->tasks[i].worker;
		plan->begin[i] = s->tasks[i].start;
		plan->end[i] = s->tasks[i].end;
	}
	qsort_r(plan->sequence, (size_t)plan->count, sizeof(*plan->sequence), by_begin, plan->begin);
	return plan;
}

/* Checks a task at its turn: `ended` [tasks] and `free_at` [workers] are of those before it. */
static int check_task(const struct smalti_task_schedule *s, const struct smalti_timetable *plan,
		      int64_t number, const bool *added, const double *free_at, struct smalti_error *error)
{
	const struct smalti_schedule_task *task = &s->tasks[number];
	const int worker = plan->worker[number];
	const char *what = NULL;
	if (added[number])
		what = "is there twice";
	else if (s->costs[number * s->places + s->workers[worker].place] > 1e300)
		what = "is on a worker that cannot run it";
	else if (plan->begin[number] < free_at[worker])
		what = "begins before its worker is free";
	for (int64_t i = 0; !what && i < task->after_count; i++)
		if (!added[task->after[i]] || plan->begin[number] < plan->end[task->after[i]])
			what = "begins before one that it waits for has ended";
	return what
		   ? smalti_fail(error, SMALTI_EINVAL, "task %" PRId64 ", '%s', %s", number, task->name, what)
		   : 0;
}

int smalti_timetable_check(const struct smalti_task_schedule *s, const struct smalti_timetable *plan,
			   struct smalti_error *error)
{
	SCOPED(free) bool *added = smalti_calloc(s->count, sizeof(*added), error);
	SCOPED(free) double *free_at = smalti_calloc(s->worker_count, sizeof(*free_at), error);
	if (!added || !free_at)
		return -1;
	if (plan->count != s->count)
		return smalti_fail(error, SMALTI_EINVAL, "%" PRId64 " of %" PRId64 " tasks are planned",
				   plan->count, s->count);
	for (int64_t i = 0; i < plan->count; i++) {
		const int64_t task = plan->sequence[i];
		if (check_task(s, plan, task, added, free_at, error) < 0)
			return -1;
		added[task] = true;
		free_at[plan->worker[task]] = plan->end[task];
	}
	return 0;
}

int smalti_timetable_followed(const struct smalti_timetable *plan, const struct smalti_task_schedule *run,
			      struct smalti_error *error)
{
	struct smalti_timetable *did = smalti_timetable_recorded(run, error);
	int64_t at[SMALTI_SCHEDULE_WORKERS] = {0}; /* where each worker is in what the run did */
	int status = did ? 0 : -1;
	if (did && did->count != plan->count)
		status = smalti_fail(error, SMALTI_EINVAL, "%" PRId64 " tasks were planned, %" PRId64 " ran",
				     plan->count, did->count);
	for (int64_t i = 0; status == 0 && i < plan->count; i++) {
		const int64_t task = plan->sequence[i];
		int64_t *next = &at[plan->worker[task]];
		while (*next < did->count && did->worker[did->sequence[*next]] != plan->worker[task])
			++*next;
		if (*next == did->count || did->sequence[*next] != task)
			status = smalti_fail(error, SMALTI_EINVAL,
					     "task %" PRId64 ", '%s', did not run in its turn", task,
					     run->tasks[task].name);
		++*next;
	}
	smalti_timetable_free(did);
	return status;
}

int smalti_timetable_write(const struct smalti_task_schedule *s, const struct smalti_timetable *plan,
			   const char *path, struct smalti_error *error)
{
	struct smalti_planned_schedule *file = smalti_planned_new(s->count, s->worker_count, error);
	int status = file ? 0 : -1;
	for (int i = 0; status == 0 && i < s->worker_count; i++)
		if (!(file->workers[i].name =
			  smalti_format(error, "%s", s->workers[i].name ? s->workers[i].name : "")))
			status = -1;
	for (int64_t i = 0; status == 0 && i < plan->count; i++)
		status = smalti_planned_add(file, plan->sequence[i], s->tasks[plan->sequence[i]].name,
					    plan->worker[plan->sequence[i]], error);
	if (status == 0)
		status = smalti_planned_write(file, path, error);
	smalti_planned_free(file);
	return status;
}
