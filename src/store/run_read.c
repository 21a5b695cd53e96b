/* SPDX-License-Identifier: Apache-2.0 */
#include "store/run_read.h"
#include "base/alloc.h"
#include "base/byte_reader.h"
#include "base/file.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* No run of ours comes near them. */
enum { LINE = 1 << 20, WORKERS = 4096, POINTS = 1 << 17, COUNTS = 4096 };

static const double LATEST = 1e12;
static const int64_t MOST = (INT64_C(1) << 53) - 1;

static char *copy_text(const cJSON *object, const char *key)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	return strdup(text ? text : "");
}

static int read_workers(const cJSON *head, struct smalti_run *run, struct smalti_error *error)
{
	const cJSON *workers = cJSON_GetObjectItemCaseSensitive(head, "workers");
	const int count = cJSON_GetArraySize(workers);
	if (count > WORKERS)
		return smalti_fail(error, SMALTI_EFORMAT, "%d workers", count);
	run->workers = smalti_calloc(count, sizeof(*run->workers), error);
	if (!run->workers)
		return -1;
	for (const cJSON *item = workers ? workers->child : NULL; item; item = item->next) {
		const char *name = cJSON_GetStringValue(item);
		run->workers[run->worker_count] = strdup(name ? name : "");
		if (!run->workers[run->worker_count++])
			return smalti_fail(error, SMALTI_ENOMEM, "out of memory");
	}
	return 0;
}

static int read_head(const cJSON *head, struct smalti_run *run, struct smalti_error *error)
{
	int64_t version = 0;
	if (smalti_json_int(head, "run", SMALTI_JSON_REQUIRED, 1, 1, &version, error) ||
	    smalti_json_double(head, "began", SMALTI_JSON_REQUIRED, 0, LATEST, &run->began, error) ||
	    smalti_json_int(head, "pid", SMALTI_JSON_REQUIRED, 0, MOST, &run->pid, error))
		return -1;
	run->host = copy_text(head, "host");
	run->policy = copy_text(head, "policy");
	run->program = copy_text(head, "program");
	run->end = strdup("");
	const cJSON *options = cJSON_GetObjectItemCaseSensitive(head, "options");
	run->options = options ? cJSON_Print(options) : strdup("");
	if (!run->host || !run->policy || !run->program || !run->end || !run->options)
		return smalti_fail(error, SMALTI_ENOMEM, "out of memory");
	return read_workers(head, run, error);
}

static int grow(struct smalti_run *run, struct smalti_error *error)
{
	struct smalti_run_point *points = smalti_grow(run->points, run->count, sizeof(*points), error);
	run->points = points ? points : run->points;
	double *busy =
	    smalti_grow(run->busy, run->count, (int64_t)sizeof(*busy) * (run->worker_count + 1), error);
	run->busy = busy ? busy : run->busy;
	return points && busy ? 0 : -1;
}

static int read_field(const cJSON *line, const struct smalti_run_field *field,
		      struct smalti_run_sample *sample, struct smalti_error *error)
{
	void *to = (char *)sample + field->offset;
	if (field->real)
		return smalti_json_double(line, field->key, SMALTI_JSON_REQUIRED, 0, LATEST, to, error);
	return smalti_json_int(line, field->key, SMALTI_JSON_REQUIRED, 0, MOST, to, error);
}

/* Of workers that the line does not have, zero. */
static void read_busy(const cJSON *line, const struct smalti_run *run, double *busy)
{
	const cJSON *values = cJSON_GetObjectItemCaseSensitive(line, "busy");
	const cJSON *item = values ? values->child : NULL;
	for (int i = 0; i < run->worker_count; i++, item = item ? item->next : NULL)
		busy[i] = item && cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble < LATEST
			      ? item->valuedouble
			      : 0;
}

static int read_point(const cJSON *line, double time, struct smalti_run *run, struct smalti_error *error)
{
	struct smalti_run_point point = {.time = time};
	if (run->count == POINTS || (run->count && time < run->points[run->count - 1].time))
		return -1;
	if (smalti_json_int(line, "resident", SMALTI_JSON_REQUIRED, 0, MOST, &point.resident, error))
		return -1;
	for (int i = 0; i < SMALTI_RUN_FIELDS; i++)
		if (read_field(line, &smalti_run_fields[i], &point.sample, error))
			return -1;
	if (grow(run, error))
		return -1;
	run->points[run->count] = point;
	read_busy(line, run, run->busy + run->count * run->worker_count);
	run->count++;
	return 0;
}

static int64_t number_at(const cJSON *row, int index)
{
	const cJSON *item = cJSON_GetArrayItem(row, index);
	return cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= (double)MOST
		   ? (int64_t)item->valuedouble
		   : 0;
}

/* Rows of `width` numbers, the last of which counts. Takes the place of what was there. */
static int read_counts(const cJSON *rows, int width, struct smalti_run_counts *counts,
		       struct smalti_error *error)
{
	const int count = cJSON_GetArraySize(rows);
	if (count > COUNTS)
		return -1;
	struct smalti_run_count *items = smalti_calloc(count, sizeof(*items), error);
	if (!items)
		return -1;
	free(counts->items);
	*counts = (struct smalti_run_counts){.items = items};
	for (const cJSON *row = rows ? rows->child : NULL; row; row = row->next)
		items[counts->count++] = (struct smalti_run_count){
		    number_at(row, 0), width == 3 ? number_at(row, 1) : 0, number_at(row, width - 1)};
	return 0;
}

static int read_line(const cJSON *line, struct smalti_run *run, struct smalti_error *error)
{
	double time = 0;
	if (smalti_json_double(line, "t", SMALTI_JSON_REQUIRED, 0, LATEST, &time, error))
		return -1;
	if (cJSON_GetObjectItemCaseSensitive(line, "lengths"))
		return read_counts(cJSON_GetObjectItemCaseSensitive(line, "lengths"), 2, &run->lengths,
				   error) ||
			       read_counts(cJSON_GetObjectItemCaseSensitive(line, "bins"), 3, &run->bins,
					   error)
			   ? -1
			   : 0;
	if (!cJSON_GetObjectItemCaseSensitive(line, "end"))
		return read_point(line, time, run, error);
	char *end = copy_text(line, "end");
	if (!end)
		return -1;
	free(run->end);
	run->end = end;
	return 0;
}

void smalti_run_free(struct smalti_run *run)
{
	for (int i = 0; i < run->worker_count; i++)
		free(run->workers[i]);
	free(run->workers);
	free(run->file);
	free(run->host);
	free(run->policy);
	free(run->program);
	free(run->end);
	free(run->options);
	free(run->points);
	free(run->busy);
	free(run->lengths.items);
	free(run->bins.items);
}

/* -1: no memory. */
static int take_line(struct smalti_byte_reader *reader, bool head, struct smalti_run *run,
		     struct smalti_error *error)
{
	struct smalti_error own = SMALTI_NO_ERROR;
	SCOPED(cJSON_Delete) cJSON *line = smalti_json_parse(reader->item, reader->length, &own);
	const int read = !line ? -1 : head ? read_head(line, run, &own) : read_line(line, run, &own);
	if (read && own.code == SMALTI_ENOMEM)
		return smalti_pass(error, &own);
	run->unreadable += read != 0;
	return 0;
}

int smalti_run_read(int file, struct smalti_run *run, struct smalti_error *error)
{
	SCOPED(free) struct smalti_byte_reader *reader = smalti_calloc(1, sizeof(*reader), error);
	if (!reader)
		return -1;
	reader->file = file;
	reader->limit = LINE;
	int status = 0, lines = 0;
	for (int found = 1; !status && found && (lines != 1 || !run->unreadable); lines++) {
		struct smalti_error own = SMALTI_NO_ERROR;
		found = smalti_item_line(reader, &own);
		if (found > 0)
			status = take_line(reader, lines == 0, run, error);
		else if (found < 0 && own.code == SMALTI_EFORMAT)
			run->unreadable++;
		else if (found < 0)
			status = smalti_pass(error, &own);
	}
	smalti_byte_reader_free(reader);
	return status ? -1 : run->host != NULL && run->workers != NULL;
}

static int add_run(const char *path, const char *name, struct smalti_runs *runs, struct smalti_error *error)
{
	struct smalti_run *grown = smalti_grow(runs->items, runs->count, sizeof(*grown), error);
	if (!grown)
		return -1;
	runs->items = grown;
	int64_t size = 0;
	struct smalti_error own = SMALTI_NO_ERROR;
	struct smalti_run run = {.file = strdup(name)};
	SCOPED(close) const int file = smalti_open_regular(path, &size, &own);
	const int status = file >= 0 && run.file ? smalti_run_read(file, &run, &own) : -1;
	if (status > 0)
		runs->items[runs->count++] = run;
	else
		smalti_run_free(&run);
	runs->unreadable += status <= 0;
	return own.code == SMALTI_ENOMEM ? smalti_pass(error, &own) : 0;
}

static int by_begin(const void *a, const void *b)
{
	const struct smalti_run *first = a, *second = b;
	if (first->began != second->began)
		return first->began < second->began ? -1 : 1;
	return strcmp(first->file, second->file);
}

static bool is_log(const char *name)
{
	const size_t length = strlen(name);
	return name[0] != '.' && length > 6 && strcmp(name + length - 6, ".jsonl") == 0;
}

int smalti_runs_read(const char *directory, struct smalti_runs *runs, struct smalti_error *error)
{
	*runs = (struct smalti_runs){.items = NULL};
	SCOPED(free) char *path = smalti_format(error, "%s/runs", directory);
	DIR *entries = path ? opendir(path) : NULL;
	int status = path ? 0 : -1;
	if (path && !entries && errno != ENOENT)
		status = smalti_fail_errno(error, "%s: cannot be read", path);
	for (const struct dirent *entry = NULL; entries && !status && (entry = readdir(entries));) {
		if (!is_log(entry->d_name))
			continue;
		SCOPED(free) char *file = smalti_format(error, "%s/%s", path, entry->d_name);
		status = file ? add_run(file, entry->d_name, runs, error) : -1;
	}
	if (entries)
		closedir(entries);
	if (runs->count)
		qsort(runs->items, (size_t)runs->count, sizeof(*runs->items), by_begin);
	if (status)
		smalti_runs_free(runs);
	return status;
}

void smalti_runs_free(struct smalti_runs *runs)
{
	for (int i = 0; i < runs->count; i++)
		smalti_run_free(&runs->items[i]);
	free(runs->items);
	*runs = (struct smalti_runs){.items = NULL};
}
