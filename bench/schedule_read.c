/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/schedule.h"
#include "simulation/trace_events.h"

#include <math.h>

static const double micro = 1e-6;

static int read_places(struct smalti_task_schedule *s, struct smalti_error *error)
{
	const cJSON *places = cJSON_GetObjectItemCaseSensitive(s->trace, "places"), *place, *worker;
	s->places = cJSON_GetArraySize(places);
	cJSON_ArrayForEach (place, places)
		s->worker_count += cJSON_GetArraySize(place);
	if (s->places == 0 || s->worker_count == 0 || s->worker_count > SMALTI_SCHEDULE_WORKERS)
		return smalti_fail(error, SMALTI_EFORMAT, "no places, or no workers at them");
	if (s->places > SMALTI_SCHEDULE_WORKERS)
		return smalti_fail(error, SMALTI_EFORMAT, "%d places: expected %d at most", s->places,
				   SMALTI_SCHEDULE_WORKERS);
	s->place_workers = smalti_calloc(s->places, sizeof(*s->place_workers), error);
	s->workers = smalti_calloc(s->worker_count, sizeof(*s->workers), error);
	if (!s->place_workers || !s->workers)
		return -1;
	int index = 0;
	cJSON_ArrayForEach (place, places) {
		cJSON_ArrayForEach (worker, place) {
			const double at = cJSON_GetNumberValue(worker);
			if (!(at >= 0 && at < s->worker_count))
				return smalti_fail(error, SMALTI_EFORMAT, "worker %g of %d", at,
						   s->worker_count);
			s->workers[(int)at].place = index;
			s->place_workers[index]++;
		}
		index++;
	}
	return 0;
}

/* Counts tasks, which are numbered without gaps. */
static int make_tasks(struct smalti_task_schedule *s, struct smalti_error *error)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, smalti_trace_events(s->trace))
		s->count += smalti_trace_event(item).kind == SMALTI_TRACE_TASK;
	if (s->count == 0)
		return smalti_fail(error, SMALTI_EFORMAT, "no tasks");
	s->tasks = smalti_calloc(s->count, sizeof(*s->tasks), error);
	s->expected = smalti_calloc(s->count, sizeof(*s->expected), error);
	s->costs = smalti_calloc(s->count, s->places * (int64_t)sizeof(*s->costs), error);
	return s->tasks && s->expected && s->costs ? 0 : -1;
}

/* Returns N of "image N", else -1. */
static int64_t image_of(const cJSON *arguments)
{
	static const char image[] = "image ";
	const char *request = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(arguments, "request"));
	return request && strncmp(request, image, strlen(image)) == 0
		   ? strtoll(request + strlen(image), NULL, 10)
		   : -1;
}

static int read_after(struct smalti_schedule_task *task, int64_t own, const cJSON *list,
		      struct smalti_error *error)
{
	const cJSON *item;
	task->after = smalti_calloc(cJSON_GetArraySize(list) + 1, sizeof(*task->after), error);
	if (!task->after)
		return -1;
	cJSON_ArrayForEach (item, list) {
		const double before = cJSON_GetNumberValue(item);
		if (!(before >= 0 && before < (double)own))
			return smalti_fail(error, SMALTI_EFORMAT, "task %lld waits for task %g",
					   (long long)own, before);
		task->after[task->after_count++] = (int64_t)before;
	}
	return 0;
}

static void read_costs(struct smalti_task_schedule *s, int64_t index, const cJSON *expected)
{
	const struct smalti_schedule_task *task = &s->tasks[index];
	double *costs = s->costs + index * s->places;
	for (int place = 0; place < s->places; place++) {
		const double cost = cJSON_GetNumberValue(cJSON_GetArrayItem(expected, place));
		costs[place] = isnan(cost) ? (double)INFINITY : micro * cost;
	}
	double *own = &costs[s->workers[task->worker].place];
	s->expected[index] = isinf(*own) ? (double)NAN : *own;
	*own = task->end - task->start;
}

/* Reads a task; `last` becomes it. */
static int read_task(struct smalti_task_schedule *s, const struct smalti_trace_event *event,
		     struct smalti_schedule_task **last, struct smalti_error *error)
{
	const double at = smalti_json_number(event->arguments, "number"), worker = event->worker;
	if (!(at >= 0 && at < (double)s->count && worker >= 0 && worker < s->worker_count))
		return smalti_fail(error, SMALTI_EFORMAT,
				   "task %g on worker %g; expected fewer than %lld, on %d", at, worker,
				   (long long)s->count, s->worker_count);
	struct smalti_schedule_task *task = *last = &s->tasks[(int64_t)at];
	if (task->name)
		return smalti_fail(error, SMALTI_EFORMAT, "task %g is there twice", at);
	task->name = event->name;
	task->worker = (int)worker;
	task->image = image_of(event->arguments);
	task->start = micro * event->start;
	task->end = task->start + micro * event->duration;
	task->ready = fmin(micro * event->ready, task->start);
	task->flops = event->flops;
	if (!task->name || isnan(task->end) || isnan(task->ready))
		return smalti_fail(error, SMALTI_EFORMAT, "task %g has no name or no times", at);
	task->submitted = micro * smalti_json_number(event->arguments, "submitted");
	if (isnan(task->submitted)) /* an older program wrote it */
		task->submitted = task->ready;
	if (smalti_schedule_read_uses(s, task, event->arguments, error) < 0)
		return -1;
	read_costs(s, (int64_t)at, cJSON_GetObjectItemCaseSensitive(event->arguments, "expected"));
	return read_after(task, (int64_t)at, cJSON_GetObjectItemCaseSensitive(event->arguments, "after"),
			  error);
}

static int read_name(struct smalti_task_schedule *s, const struct smalti_trace_event *event,
		     struct smalti_error *error)
{
	if (!event->name || !(event->worker >= 0 && event->worker < s->worker_count))
		return 0;
	struct smalti_schedule_worker *worker = &s->workers[(int)event->worker];
	free(worker->name);
	worker->name = smalti_format(error, "%s", event->name);
	return worker->name ? 0 : -1;
}

static int read_events(struct smalti_task_schedule *s, struct smalti_error *error)
{
	const cJSON *item;
	struct smalti_schedule_task *last = NULL;
	int status = 0;
	cJSON_ArrayForEach (item, smalti_trace_events(s->trace)) {
		const struct smalti_trace_event event = smalti_trace_event(item);
		if (event.kind == SMALTI_TRACE_TASK)
			status = read_task(s, &event, &last, error);
		else if (event.kind == SMALTI_TRACE_TRANSFER && last) {
			last->fetch_start = micro * event.start;
			last->fetch_end = last->fetch_start + micro * event.duration;
		} else if (event.kind == SMALTI_TRACE_WORKER)
			status = read_name(s, &event, error);
		if (status < 0)
			return -1;
	}
	for (int64_t i = 0; i < s->count; i++)
		if (!s->tasks[i].name)
			return smalti_fail(error, SMALTI_EFORMAT, "task %lld is missing", (long long)i);
	return 0;
}

/* Shifts times: 0 is when the first task is ready. */
static void shift(struct smalti_task_schedule *s)
{
	double first = (double)INFINITY;
	for (int64_t i = 0; i < s->count; i++)
		first = fmin(first, s->tasks[i].ready);
	for (int64_t i = 0; i < s->count; i++) {
		struct smalti_schedule_task *task = &s->tasks[i];
		task->ready -= first, task->start -= first, task->end -= first;
		task->submitted = fmax(0, task->submitted - first);
		task->fetch_start = fmax(0, task->fetch_start - first);
		task->fetch_end = fmax(0, task->fetch_end - first);
	}
}

static void read_transfers(struct smalti_task_schedule *s)
{
	const cJSON *link;
	cJSON_ArrayForEach (link, cJSON_GetObjectItemCaseSensitive(s->trace, "transfers"))
		s->bytes += (int64_t)smalti_json_number(link, "bytes");
	s->transfers = smalti_json_number(s->trace, "transfer_bound");
}

static int read_trace(struct smalti_task_schedule *s, struct smalti_error *error)
{
	if (read_places(s, error) < 0 || smalti_schedule_read_tiles(s, error) < 0 ||
	    make_tasks(s, error) < 0 || read_events(s, error) < 0)
		return -1;
	shift(s);
	read_transfers(s);
	return smalti_schedule_find_weights(s, error);
}

struct smalti_task_schedule *smalti_schedule_read(const char *path, struct smalti_error *error)
{
	struct smalti_task_schedule *s = smalti_calloc(1, sizeof(*s), error);
	if (s && (s->trace = smalti_trace_open(path, error))) {
		if (read_trace(s, error) == 0)
			return s;
		smalti_error_prefix(error, "%s", path);
	}
	smalti_schedule_free(s);
	return NULL;
}

void smalti_schedule_free(struct smalti_task_schedule *s)
{
	if (!s)
		return;
	for (int64_t i = 0; s->tasks && i < s->count; i++) {
		free(s->tasks[i].after);
		free(s->tasks[i].reads);
		free(s->tasks[i].writes);
	}
	for (int i = 0; s->workers && i < s->worker_count; i++)
		free(s->workers[i].name);
	free(s->tasks);
	free(s->workers);
	free(s->place_workers);
	free(s->costs);
	free(s->expected);
	free(s->tiles);
	free(s->made);
	free(s->weights);
	free(s->links);
	cJSON_Delete(s->trace);
	free(s);
}
