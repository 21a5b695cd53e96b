/* SPDX-License-Identifier: Apache-2.0 */
#include "store/run_read.h"
#include "base/file.h"

/* Limits that no run of ours comes near. */
enum { WORKERS = 4096, POINTS = 1 << 17, COUNTS = 4096 };

static const double LATEST = 1e12;
static const int64_t MOST = (INT64_C(1) << 53) - 1;

static int read_head(const cJSON *head, struct smalti_run *run, struct smalti_error *error)
{
	int64_t version = 0;
	if (smalti_json_int(head, "run", SMALTI_JSON_REQUIRED, 1, 1, &version, error) ||
	    smalti_json_double(head, "began", SMALTI_JSON_REQUIRED, 0, LATEST, &run->began, error) ||
	    smalti_json_int(head, "pid", SMALTI_JSON_REQUIRED, 0, MOST, &run->pid, error))
		return -1;
	run->worker_count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(head, "workers"));
	return run->worker_count > WORKERS ? -1 : 0;
}

static int read_field(const cJSON *line, const struct smalti_run_field *field,
		      struct smalti_run_sample *sample, struct smalti_error *error)
{
	void *to = (char *)sample + field->offset;
	if (field->real)
		return smalti_json_double(line, field->key, SMALTI_JSON_REQUIRED, 0, LATEST, to, error);
	return smalti_json_int(line, field->key, SMALTI_JSON_OPTIONAL, 0, MOST, to, error);
}

/* Sets 0 for workers that the line does not have. */
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
	const int64_t busy_bytes = (int64_t)sizeof(*run->busy) * (run->worker_count + 1);
	if (smalti_grow(&run->points, run->count, sizeof(*run->points), error) < 0 ||
	    smalti_grow(&run->busy, run->count, busy_bytes, error) < 0)
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

/* Reads rows of `width` numbers, the last of which counts, in the place of what was there. */
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

static int read_line(cJSON *line, struct smalti_run *run, struct smalti_error *error)
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
	if (smalti_json_take(&run->devices, "devices", line) ||
	    smalti_json_take(&run->predicted, "predicted", line) || smalti_json_take(&run->end, "end", line))
		return 0;
	return read_point(line, time, run, error);
}

void smalti_run_free(struct smalti_run *run)
{
	free(run->file);
	cJSON_Delete(run->head);
	cJSON_Delete(run->devices);
	cJSON_Delete(run->predicted);
	cJSON_Delete(run->end);
	free(run->points);
	free(run->busy);
	free(run->lengths.items);
	free(run->bins.items);
}

static int take_line(void *user, cJSON **line, struct smalti_error *error)
{
	struct smalti_run *run = user;
	if (run->head)
		return read_line(*line, run, error);
	if (run->unreadable || read_head(*line, run, error))
		return 1;
	run->head = *line;
	*line = NULL;
	return 0;
}

int smalti_run_read(int file, struct smalti_run *run, struct smalti_error *error)
{
	if (smalti_json_lines(file, take_line, run, &run->unreadable, error))
		return -1;
	return run->head != NULL;
}

static int add_run(const char *path, const char *name, struct smalti_runs *runs, struct smalti_error *error)
{
	if (smalti_grow(&runs->items, runs->count, sizeof(*runs->items), error) < 0)
		return -1;
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
	return name[0] != '.' && smalti_stem(name, ".jsonl") > 0;
}

int smalti_runs_read(const char *directory, struct smalti_runs *runs, struct smalti_error *error)
{
	*runs = (struct smalti_runs){.items = NULL};
	SCOPED(free) char *path = smalti_format(error, "%s/runs", directory);
	SCOPED(closedir) DIR *entries = path ? opendir(path) : NULL;
	int status = path ? 0 : -1;
	if (path && !entries && errno != ENOENT)
		status = smalti_fail_errno(error, "%s: cannot be read", path);
	for (const struct dirent *entry = NULL; entries && !status && (entry = readdir(entries));) {
		if (!is_log(entry->d_name))
			continue;
		SCOPED(free) char *file = smalti_format(error, "%s/%s", path, entry->d_name);
		status = file ? add_run(file, entry->d_name, runs, error) : -1;
	}
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
