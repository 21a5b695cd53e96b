/* SPDX-License-Identifier: Apache-2.0 */
#include "report/page.h"
#include "report/report.h"

/* Points of a page, but at least LEAST of each run: a page of many long runs is some megabytes. */
enum { POINTS = 1 << 15, LEAST = 16 };

static void put_texts(FILE *page, const char *key, char *const *texts, int count)
{
	fprintf(page, "\"%s\":[", key);
	for (int i = 0; i < count; i++) {
		fputs(i ? "," : "", page);
		smalti_page_text(page, texts[i]);
	}
	fputs("],", page);
}

static void put_group(FILE *page, const struct smalti_failure_group *group)
{
	int examples = 0;
	while (examples < SMALTI_FAILURE_EXAMPLES && group->examples[examples])
		examples++;
	fputc('{', page);
	smalti_page_member(page, "stage", group->stage);
	smalti_page_member(page, "reason", group->reason);
	put_texts(page, "examples", group->examples, examples);
	fprintf(page, "\"count\":%" PRId64 "}", group->count);
}

static void put_failures(FILE *page, const struct smalti_failures *failures)
{
	fprintf(page,
		"\"failures\":{\"lines\":%" PRId64 ",\"items\":%" PRId64 ",\"others\":%" PRId64
		",\"unreadable\":%" PRId64 ",\"groups\":[",
		failures->lines, failures->items, failures->others, failures->unreadable);
	for (int i = 0; i < failures->count; i++) {
		fputs(i ? ",\n" : "", page);
		put_group(page, &failures->groups[i]);
	}
	fputs("]},\n", page);
}

static void put_counts(FILE *page, const char *key, const struct smalti_run_counts *counts, bool pairs)
{
	fprintf(page, "\"%s\":[", key);
	for (int i = 0; i < counts->count; i++) {
		const struct smalti_run_count *item = &counts->items[i];
		fprintf(page, "%s[%" PRId64, i ? "," : "", item->first);
		if (pairs)
			fprintf(page, ",%" PRId64, item->second);
		fprintf(page, ",%" PRId64 "]", item->count);
	}
	fputs("],", page);
}

/* Joins neighbours: counters are the last one's; of what goes up and down, the largest is kept. */
static struct smalti_run_point join(const struct smalti_run_point *points, int64_t count)
{
	struct smalti_run_point joined = points[count - 1];
	for (int64_t i = 0; i < count; i++) {
		const struct smalti_run_sample *sample = &points[i].sample;
		joined.resident = smalti_max(joined.resident, points[i].resident);
		joined.sample.waiting = smalti_max(joined.sample.waiting, sample->waiting);
		joined.sample.computing = smalti_max(joined.sample.computing, sample->computing);
		joined.sample.finished = smalti_max(joined.sample.finished, sample->finished);
	}
	return joined;
}

static void put_point(FILE *page, const struct smalti_run_point *point)
{
	fprintf(page, "[%.9g,%" PRId64, point->time, point->resident);
	for (int i = 0; i < SMALTI_RUN_FIELDS; i++) {
		const void *at = (const char *)&point->sample + smalti_run_fields[i].offset;
		if (smalti_run_fields[i].real)
			fprintf(page, ",%.9g", *(const double *)at);
		else
			fprintf(page, ",%" PRId64, *(const int64_t *)at);
	}
	fputc(']', page);
}

/* Puts measurements and workers' busy seconds, `step` neighbours joined at a time. */
static void put_points(FILE *page, const struct smalti_run *run, int64_t step)
{
	fputs("\"points\":[", page);
	for (int64_t i = 0; i < run->count; i += step) {
		const struct smalti_run_point point = join(&run->points[i], smalti_min(run->count - i, step));
		fputs(i ? ",\n" : "", page);
		put_point(page, &point);
	}
	fputs("],\"busy\":[", page);
	for (int64_t i = 0; i < run->count; i += step) {
		const int64_t last = smalti_min(i + step, run->count) - 1;
		fputs(i ? ",\n[" : "[", page);
		for (int j = 0; j < run->worker_count; j++)
			fprintf(page, "%s%.9g", j ? "," : "", run->busy[last * run->worker_count + j]);
		fputc(']', page);
	}
	fputs("]", page);
}

/* Puts an object as a text that people read. */
static void put_object(FILE *page, const char *key, const cJSON *object)
{
	SCOPED(free) char *text = cJSON_Print(cJSON_GetObjectItemCaseSensitive(object, key));
	smalti_page_member(page, key, text ? text : "");
}

static void put_run(FILE *page, const struct smalti_run *run, int64_t max)
{
	fputc('{', page);
	smalti_page_value(page, "host", run->head);
	smalti_page_value(page, "program", run->head);
	smalti_page_value(page, "policy", run->head);
	smalti_page_member(page, "end", smalti_text_of(run->end));
	put_object(page, "options", run->head);
	put_object(page, "sizes", run->head);
	smalti_page_list(page, "workers", cJSON_GetObjectItemCaseSensitive(run->head, "workers"));
	put_counts(page, "lengths", &run->lengths, false);
	put_counts(page, "bins", &run->bins, true);
	smalti_page_devices(page, run->devices);
	smalti_page_prediction(page, run->predicted);
	fprintf(page, "\"pid\":%" PRId64 ",\"began\":%.17g,\"unreadable\":%" PRId64 ",", run->pid, run->began,
		run->unreadable);
	put_points(page, run, run->count / max + 1);
	fputc('}', page);
}

static void put_runs(FILE *page, const struct smalti_runs *runs)
{
	fputs("\"fields\":[\"t\",\"resident\"", page);
	for (int i = 0; i < SMALTI_RUN_FIELDS; i++)
		fprintf(page, ",\"%s\"", smalti_run_fields[i].key);
	fputs("],\n\"runs\":[", page);
	for (int i = 0; i < runs->count; i++) {
		fputs(i ? ",\n" : "", page);
		put_run(page, &runs->items[i], smalti_max(POINTS / runs->count, LEAST));
	}
	fputs("],\n", page);
}

void smalti_report_data(FILE *page, const struct smalti_report *report)
{
	fputs("{\"report\":\"extraction\",", page);
	smalti_page_member(page, "folder", report->directory);
	fprintf(page, "\"every\":%" PRId64 ",", report->every);
	if (report->rows < 0)
		fputs("\"rows\":null,", page);
	else
		fprintf(page, "\"rows\":%" PRId64 ",", report->rows);
	put_failures(page, &report->failures);
	put_runs(page, &report->runs);
	fprintf(page, "\"unreadable\":%d,\"shard_bytes\":%" PRId64 "}", report->runs.unreadable,
		report->shards_bytes);
}
