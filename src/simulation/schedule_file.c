/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/schedule_file.h"
#include "base/file.h"
#include "base/json.h"

enum { LARGEST_FILE = 1 << 30, MAX_TASKS = 1 << 24, MAX_WORKERS = 256, FORMAT_VERSION = 1 };
static const char format[] = "smalti-schedule";

struct smalti_planned_schedule *smalti_planned_new(int64_t tasks, int workers, struct smalti_error *error)
{
	struct smalti_planned_schedule *schedule = smalti_calloc(1, sizeof(*schedule), error);
	if (!schedule)
		return NULL;
	schedule->tasks = smalti_calloc(tasks, sizeof(*schedule->tasks), error);
	schedule->sequence = smalti_calloc(tasks, sizeof(*schedule->sequence), error);
	schedule->workers = smalti_calloc(workers, sizeof(*schedule->workers), error);
	if (!schedule->tasks || !schedule->sequence || !schedule->workers) {
		smalti_planned_free(schedule);
		return NULL;
	}
	schedule->count = tasks;
	schedule->worker_count = workers;
	return schedule;
}

void smalti_planned_free(struct smalti_planned_schedule *schedule)
{
	if (!schedule)
		return;
	for (int64_t i = 0; i < schedule->count; i++)
		free(schedule->tasks[i].name);
	for (int i = 0; i < schedule->worker_count; i++)
		free(schedule->workers[i].name);
	free(schedule->tasks);
	free(schedule->sequence);
	free(schedule->workers);
	free(schedule);
}

int smalti_planned_add(struct smalti_planned_schedule *s, int64_t number, const char *name, int64_t worker,
		       struct smalti_error *error)
{
	if (number < 0 || number >= s->count || worker < 0 || worker >= s->worker_count)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "task %" PRId64 " on worker %" PRId64 ": expected fewer than %" PRId64
				   " tasks, on %d workers",
				   number, worker, s->count, s->worker_count);
	struct smalti_planned_task *task = &s->tasks[number];
	if (task->name)
		return smalti_fail(error, SMALTI_EFORMAT, "task %" PRId64 " is there twice", number);
	task->name = smalti_format(error, "%s", name);
	if (!task->name)
		return -1;
	task->worker = (int)worker;
	task->turn = s->workers[worker].tasks++;
	task->position = s->added;
	s->sequence[s->added++] = number;
	return 0;
}

/* Makes the schedule from the first line. */
static struct smalti_planned_schedule *read_head(const cJSON *line, struct smalti_error *error)
{
	const char *names[MAX_WORKERS];
	int64_t tasks;
	int workers;
	if (smalti_json_check_format(line, format, FORMAT_VERSION,
				     ": make it again by smalti-bench schedule --optimal", error) < 0 ||
	    smalti_json_int(line, "tasks", SMALTI_JSON_REQUIRED, 1, MAX_TASKS, &tasks, error) < 0 ||
	    smalti_json_strings(line, "workers", SMALTI_JSON_REQUIRED, MAX_WORKERS, names, &workers, error) <
		0)
		return NULL;
	struct smalti_planned_schedule *schedule = smalti_planned_new(tasks, workers, error);
	for (int i = 0; schedule && i < workers; i++)
		if (!(schedule->workers[i].name = smalti_format(error, "%s", names[i]))) {
			smalti_planned_free(schedule);
			return NULL;
		}
	return schedule;
}

static int read_task(struct smalti_planned_schedule *schedule, const cJSON *line, struct smalti_error *error)
{
	int64_t number, worker;
	const char *name;
	if (smalti_json_int(line, "task", SMALTI_JSON_REQUIRED, 0, MAX_TASKS, &number, error) < 0 ||
	    smalti_json_int(line, "worker", SMALTI_JSON_REQUIRED, 0, MAX_WORKERS, &worker, error) < 0 ||
	    smalti_json_string(line, "name", SMALTI_JSON_REQUIRED, &name, error) < 0)
		return -1;
	return smalti_planned_add(schedule, number, name, worker, error);
}

/* Reads a line into the schedule, which the first one makes. */
static int read_line(struct smalti_planned_schedule **schedule, const char *text, size_t length,
		     struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *line = smalti_json_parse(text, length, error);
	if (!line)
		return -1;
	if (*schedule)
		return read_task(*schedule, line, error);
	*schedule = read_head(line, error);
	return *schedule ? 0 : -1;
}

static int read_lines(struct smalti_planned_schedule **schedule, const char *text, size_t length,
		      struct smalti_error *error)
{
	int64_t number = 0;
	for (size_t at = 0; at < length; at++) {
		const char *end = memchr(text + at, '\n', length - at);
		const size_t bytes = end ? (size_t)(end - text) - at : length - at;
		number++;
		if (read_line(schedule, text + at, bytes, error) < 0) {
			smalti_error_prefix(error, "line %" PRId64, number);
			return -1;
		}
		at += bytes;
	}
	if (!*schedule)
		return smalti_fail(error, SMALTI_EFORMAT, "empty: expected a schedule");
	if ((*schedule)->added < (*schedule)->count)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "expected %" PRId64 " tasks, found %" PRId64 ": the file is cut short",
				   (*schedule)->count, (*schedule)->added);
	return 0;
}

struct smalti_planned_schedule *smalti_planned_read(const char *path, struct smalti_error *error)
{
	struct smalti_planned_schedule *schedule = NULL;
	size_t length;
	SCOPED(free) char *text = smalti_file_read(path, LARGEST_FILE, &length, error);
	if (!text)
		return NULL;
	if (read_lines(&schedule, text, length, error) == 0)
		return schedule;
	smalti_error_prefix(error, "%s", path);
	smalti_planned_free(schedule);
	return NULL;
}

/* Writes a line; false without memory. */
static bool write_line(FILE *file, const cJSON *line)
{
	char *text = line ? cJSON_PrintUnformatted(line) : NULL;
	if (text)
		fprintf(file, "%s\n", text);
	cJSON_free(text);
	return text != NULL;
}

static bool write_head(const struct smalti_planned_schedule *schedule, FILE *file)
{
	SCOPED(cJSON_Delete) cJSON *line = cJSON_CreateObject();
	cJSON_AddStringToObject(line, "format", format);
	cJSON_AddNumberToObject(line, "version", FORMAT_VERSION);
	cJSON_AddNumberToObject(line, "tasks", (double)schedule->count);
	cJSON *workers = cJSON_AddArrayToObject(line, "workers");
	for (int i = 0; i < schedule->worker_count; i++)
		cJSON_AddItemToArray(workers, cJSON_CreateString(schedule->workers[i].name));
	return write_line(file, line);
}

static bool write_task(const struct smalti_planned_schedule *schedule, int64_t number, FILE *file)
{
	SCOPED(cJSON_Delete) cJSON *line = cJSON_CreateObject();
	cJSON_AddNumberToObject(line, "task", (double)number);
	cJSON_AddStringToObject(line, "name", schedule->tasks[number].name);
	cJSON_AddNumberToObject(line, "worker", schedule->tasks[number].worker);
	return write_line(file, line);
}

int smalti_planned_write(const struct smalti_planned_schedule *schedule, const char *path,
			 struct smalti_error *error)
{
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (!writer)
		return -1;
	FILE *file = smalti_writer_stream(writer);
	bool whole = write_head(schedule, file);
	for (int64_t i = 0; whole && i < schedule->added; i++)
		whole = write_task(schedule, schedule->sequence[i], file);
	if (whole)
		return smalti_writer_commit(writer, error);
	smalti_writer_abort(writer);
	return smalti_fail(error, SMALTI_ENOMEM, "%s: no memory to write it", path);
}
