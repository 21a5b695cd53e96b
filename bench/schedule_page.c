/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/schedule_page.h"
#include "base/file.h"
#include "report/page.h"

#include <math.h>

enum { MOMENTS = 160 }; /* of the ready queue */

struct smalti_schedule_page {
	struct smalti_writer *writer;
	int cases;
};

/* Writes a number; JSON has no NAN. */
static void put_number(FILE *file, const char *key, double number)
{
	if (isnan(number))
		fprintf(file, "\"%s\":null,", key);
	else
		fprintf(file, "\"%s\":%.9g,", key, number);
}

static void put_workers(FILE *file, const struct smalti_task_schedule *s)
{
	fputs("\"workers\":[", file);
	for (int i = 0; i < s->worker_count; i++) {
		fputs(i ? ",{" : "{", file);
		smalti_page_member(file, "name", s->workers[i].name ? s->workers[i].name : "");
		for (int cause = 0; cause < SMALTI_IDLE_CAUSES; cause++)
			put_number(file, smalti_idle_names[cause], s->workers[i].idle[cause]);
		fprintf(file, "\"busy\":%.9g}", s->workers[i].busy);
	}
	fputs("],\n", file);
}

static void put_ops(FILE *file, const struct smalti_task_schedule *s)
{
	struct smalti_schedule_op ops[SMALTI_SCHEDULE_OPS];
	const int count = smalti_schedule_ops(s, ops);
	fputs("\"ops\":[", file);
	for (int i = 0; i < count; i++) {
		fputs(i ? ",{" : "{", file);
		smalti_page_member(file, "name", ops[i].name);
		fprintf(file, "\"count\":%" PRId64 ",\"seconds\":%.6g,\"deviation\":%.6g}", ops[i].count,
			ops[i].seconds, ops[i].deviation);
	}
	fputs("],\n", file);
}

static void put_queue(FILE *file, const struct smalti_task_schedule *s)
{
	int64_t waiting[MOMENTS];
	smalti_schedule_queue(s, waiting, MOMENTS);
	fputs("\"queue\":[", file);
	for (int i = 0; i < MOMENTS; i++)
		fprintf(file, "%s%" PRId64, i ? "," : "", waiting[i]);
	fputs("],\n", file);
}

/* Writes each task's worker, begin, length and readiness in microseconds, and its name's number in the list
 * behind. */
static void put_tasks(FILE *file, const struct smalti_task_schedule *s)
{
	const char *names[SMALTI_SCHEDULE_OPS];
	int count = 0;
	fputs("\"tasks\":[", file);
	for (int64_t i = 0; i < s->count; i++) {
		const struct smalti_schedule_task *task = &s->tasks[i];
		int at = 0;
		while (at < count && strcmp(names[at], task->name) != 0)
			at++;
		if (at == count && count < SMALTI_SCHEDULE_OPS)
			names[count++] = task->name;
		fprintf(file, "%s[%d,%.1f,%.1f,%.1f,%d]", i ? "," : "", task->worker, 1e6 * task->start,
			1e6 * (task->end - task->start), 1e6 * task->ready, at);
	}
	fputs("],\n\"names\":[", file);
	for (int i = 0; i < count; i++) {
		fputs(i ? "," : "", file);
		smalti_page_text(file, names[i]);
	}
	fputs("]", file);
}

static void put_regret(FILE *file, const struct smalti_task_schedule *s, const struct smalti_regret *regret)
{
	struct smalti_bench_value line[SMALTI_REGRET_COLUMNS];
	smalti_regret_line(s, regret, line);
	fputs("\"regret\":{", file);
	for (int i = 0; i < SMALTI_REGRET_COLUMNS - 1; i++)
		put_number(file, smalti_regret_columns[i].key, line[i].number);
	fprintf(file, "\"tasks\":%" PRId64 "},\n", s->count);
}

struct smalti_schedule_page *smalti_schedule_page_open(const char *path, const char *machine,
						       const char *model, struct smalti_error *error)
{
	struct smalti_schedule_page *page = smalti_calloc(1, sizeof(*page), error);
	if (!page)
		return NULL;
	page->writer = smalti_writer_open(path, error);
	if (!page->writer) {
		free(page);
		return NULL;
	}
	FILE *file = smalti_writer_stream(page->writer);
	smalti_page_begin(file);
	fputs("{\"report\":\"schedules\",", file);
	smalti_page_member(file, "machine", machine ? machine : "this machine");
	smalti_page_member(file, "model", model ? model : "the embedded model");
	fputs("\"cases\":[", file);
	return page;
}

int smalti_schedule_page_add(struct smalti_schedule_page *page, const char *name,
			     const struct smalti_task_schedule *s, const struct smalti_regret *regret,
			     struct smalti_error *error)
{
	FILE *file = smalti_writer_stream(page->writer);
	fputs(page->cases++ ? ",\n{" : "{", file);
	smalti_page_member(file, "name", name);
	put_number(file, "makespan", s->makespan);
	put_number(file, "area", s->area);
	put_number(file, "path", s->path);
	put_number(file, "linear", s->linear);
	put_number(file, "transfers", s->transfers);
	put_number(file, "p50", s->latency_median);
	put_number(file, "p95", s->latency_95);
	put_number(file, "last", s->latency_max);
	put_number(file, "bytes", (double)s->bytes);
	if (regret)
		put_regret(file, s, regret);
	put_workers(file, s);
	put_ops(file, s);
	put_queue(file, s);
	put_tasks(file, s);
	fputc('}', file);
	return ferror(file) ? smalti_fail(error, SMALTI_EIO, "the page cannot be written") : 0;
}

int smalti_schedule_page_close(struct smalti_schedule_page *page, int status, struct smalti_error *error)
{
	if (!page)
		return status;
	if (status < 0)
		smalti_writer_abort(page->writer);
	else {
		FILE *file = smalti_writer_stream(page->writer);
		fputs("]}", file);
		smalti_page_end(file);
		status = smalti_writer_commit(page->writer, error);
	}
	free(page);
	return status;
}
