/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/schedule.h"
#include "bench/statistics.h"

#include <math.h>

const char *const smalti_idle_names[SMALTI_IDLE_CAUSES] = {"start", "data", "no_ready_task", "others", "end"};

/* A task begins to wait, or to run. */
struct change {
	double time;
	int64_t by, waiting; /* `waiting`: tasks from here on */
	double sum;          /* seconds up to here while a task waited */
};

static int by_time(const void *a, const void *b)
{
	const struct change *x = a, *y = b;
	return (x->time > y->time) - (x->time < y->time);
}

static struct change *changes_of(const struct smalti_task_schedule *s, struct smalti_error *error)
{
	struct change *changes = smalti_calloc(2 * s->count, sizeof(*changes), error);
	if (!changes)
		return NULL;
	for (int64_t i = 0; i < s->count; i++) {
		changes[2 * i] = (struct change){.time = s->tasks[i].ready, .by = 1};
		changes[2 * i + 1] = (struct change){.time = s->tasks[i].start, .by = -1};
	}
	qsort(changes, (size_t)(2 * s->count), sizeof(*changes), by_time);
	changes[0].waiting = changes[0].by;
	for (int64_t i = 1; i < 2 * s->count; i++) {
		const struct change *before = &changes[i - 1];
		changes[i].waiting = before->waiting + changes[i].by;
		changes[i].sum = before->sum + (before->waiting > 0 ? changes[i].time - before->time : 0);
	}
	return changes;
}

/* Returns the seconds up to `time` while a task waited. */
static double waited(const struct change *changes, int64_t count, double time)
{
	int64_t low = -1, high = count;
	while (high - low > 1) {
		const int64_t middle = (low + high) / 2;
		if (changes[middle].time <= time)
			low = middle;
		else
			high = middle;
	}
	return low < 0 ? 0 : changes[low].sum + (changes[low].waiting > 0 ? time - changes[low].time : 0);
}

struct piece {
	double start, end, fetch_start, fetch_end;
};

static int by_start(const void *a, const void *b)
{
	const struct piece *x = a, *y = b;
	return (x->start > y->start) - (x->start < y->start);
}

/* Adds the gap before a task, or after the last. */
static void add_gap(struct smalti_schedule_worker *worker, const struct change *changes, int64_t count,
		    double from, const struct piece *next)
{
	const double data = fmax(0, fmin(next->fetch_end, next->start) - fmax(next->fetch_start, from));
	const double ready =
	    waited(changes, count, fmax(from, next->start - data)) - waited(changes, count, from);
	worker->idle[SMALTI_IDLE_DATA] += data;
	worker->idle[SMALTI_IDLE_OTHERS] += ready;
	worker->idle[SMALTI_IDLE_NONE] += fmax(0, next->start - from - data - ready);
}

static void add_worker(struct smalti_schedule_worker *worker, const struct change *changes, int64_t count,
		       struct piece *pieces, int64_t tasks, double makespan)
{
	qsort(pieces, (size_t)tasks, sizeof(*pieces), by_start);
	double end = tasks ? pieces[0].start : makespan;
	worker->idle[SMALTI_IDLE_START] = end;
	for (int64_t i = 0; i < tasks; i++) {
		if (i && pieces[i].start > end)
			add_gap(worker, changes, count, end, &pieces[i]);
		worker->busy += fmax(0, pieces[i].end - fmax(end, pieces[i].start));
		end = fmax(end, pieces[i].end);
	}
	worker->idle[SMALTI_IDLE_END] = fmax(0, makespan - end);
}

/* Measures the latencies of at most as many images as tasks. */
static int measure_latencies(struct smalti_task_schedule *s, struct smalti_error *error)
{
	SCOPED(free) double *ends = smalti_calloc(s->count, sizeof(*ends), error);
	int64_t count = 0;
	if (!ends)
		return -1;
	for (int64_t i = 0; i < s->count; i++) {
		const int64_t image = s->tasks[i].image;
		if (image < 0 || image >= s->count)
			continue;
		ends[image] = fmax(ends[image], s->tasks[i].end);
		count = smalti_max(count, image + 1);
	}
	s->latency_median = count ? smalti_percentile(ends, count, 50) : (double)NAN;
	s->latency_95 = count ? smalti_percentile(ends, count, 95) : (double)NAN;
	s->latency_max = count ? smalti_percentile(ends, count, 100) : (double)NAN;
	return 0;
}

int smalti_schedule_measure(struct smalti_task_schedule *s, struct smalti_error *error)
{
	SCOPED(free) struct change *changes = changes_of(s, error);
	SCOPED(free) struct piece *pieces = smalti_calloc(s->count, sizeof(*pieces), error);
	if (!changes || !pieces || measure_latencies(s, error) < 0)
		return -1;
	s->makespan = s->queue = 0;
	for (int64_t i = 0; i < s->count; i++) {
		s->makespan = fmax(s->makespan, s->tasks[i].end);
		s->queue += s->tasks[i].start - s->tasks[i].ready;
	}
	s->queue /= s->makespan;
	for (int worker = 0; worker < s->worker_count; worker++) {
		int64_t tasks = 0;
		for (int64_t i = 0; i < s->count; i++)
			if (s->tasks[i].worker == worker)
				pieces[tasks++] =
				    (struct piece){s->tasks[i].start, s->tasks[i].end,
						   s->tasks[i].fetch_start, s->tasks[i].fetch_end};
		add_worker(&s->workers[worker], changes, 2 * s->count, pieces, tasks, s->makespan);
	}
	return 0;
}

void smalti_schedule_queue(const struct smalti_task_schedule *s, int64_t *waiting, int count)
{
	memset(waiting, 0, (size_t)count * sizeof(*waiting));
	for (int64_t i = 0; i < s->count; i++) {
		const double step = s->makespan / count;
		const int64_t last = (int64_t)ceil(s->tasks[i].start / step);
		for (int64_t at = (int64_t)ceil(s->tasks[i].ready / step); at < last && at < count; at++)
			waiting[at]++;
	}
}

static int longest_first(const void *a, const void *b)
{
	const struct smalti_schedule_op *x = a, *y = b;
	return (x->seconds < y->seconds) - (x->seconds > y->seconds);
}

int smalti_schedule_ops(const struct smalti_task_schedule *s,
			struct smalti_schedule_op ops[SMALTI_SCHEDULE_OPS])
{
	int count = 0;
	for (int64_t i = 0; i < s->count; i++) {
		const struct smalti_schedule_task *task = &s->tasks[i];
		int at = 0;
		if (isnan(s->expected[i]))
			continue;
		while (at < count && strcmp(ops[at].name, task->name) != 0)
			at++;
		if (at == SMALTI_SCHEDULE_OPS)
			continue;
		if (at == count)
			ops[count++] = (struct smalti_schedule_op){.name = task->name};
		ops[at].count++;
		ops[at].seconds += task->end - task->start;
		ops[at].deviation += fabs(s->expected[i] - (task->end - task->start));
	}
	qsort(ops, (size_t)count, sizeof(*ops), longest_first);
	return count;
}
