/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/numbers.h"
#include "cli/report.h"
#include "cli/report_html.h"
#include "cli/report_series.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Lines in a chart, with that of all together; runs that are shown one by one; workers that are. */
enum { LINES = SMALTI_CHART_COLOURS, SHOWN = 32, OPEN = 4, STRIPS = 64, BARS = 40, BINS = 64, NAME = 48 };

static void name_run(const struct smalti_run *run, char name[NAME])
{
	snprintf(name, NAME, "%.24s:%" PRId64, run->host, run->pid);
}

static double end_of(const struct smalti_run *run)
{
	const struct smalti_span span = smalti_span_of(run);
	return span.begin + span.seconds;
}

static void print_date(FILE *page, double seconds)
{
	char text[64] = "";
	const time_t time = (time_t)seconds;
	struct tm parts;
	if (gmtime_r(&time, &parts) && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S UTC", &parts))
		fputs(text, page);
}

/* Sessions: runs that were at work at the same time, or one after the other without a pause between. */

/* Runs first … the result − 1 are one session. */
static int session_end(const struct smalti_runs *runs, int first, struct smalti_span *span)
{
	double end = end_of(&runs->items[first]);
	int next = first + 1;
	for (; next < runs->count && runs->items[next].began <= end; next++)
		end = fmax(end, end_of(&runs->items[next]));
	*span = (struct smalti_span){runs->items[first].began, end - runs->items[first].began};
	return next;
}

static void add_up(const struct smalti_series *from, struct smalti_series *total)
{
	for (int i = 0; i < SMALTI_CHART_COLUMNS; i++)
		if (!isnan(from->values[i]))
			total->values[i] = (isnan(total->values[i]) ? 0 : total->values[i]) + from->values[i];
}

typedef void measurement(const struct smalti_run *run, const char *key, const struct smalti_span *span,
			 struct smalti_series *series);

/* A line for each run, if they are few, and for all together. */
static void print_session_chart(FILE *page, const char *title, const struct smalti_run *runs, int count,
				const struct smalti_span *span, const char *key, measurement *measure,
				const char *(*format)(double, char[SMALTI_NUMBER]))
{
	struct smalti_series *series = calloc(LINES, sizeof(*series));
	if (!series)
		return;
	int lines = 0;
	struct smalti_series *total = &series[0], one;
	snprintf(total->name, sizeof(total->name), "all together");
	for (int i = 0; i < SMALTI_CHART_COLUMNS; i++)
		total->values[i] = NAN;
	for (int i = 0; i < count; i++) {
		char name[NAME];
		name_run(&runs[i], name);
		snprintf(one.name, sizeof(one.name), "%s", name);
		measure(&runs[i], key, span, &one);
		add_up(&one, total);
		if (count < LINES)
			series[++lines] = one;
	}
	const struct smalti_chart chart = {.title = title,
					   .seconds = span->seconds,
					   .count = count == 1 ? 1 : lines + 1,
					   .series = series,
					   .format = format};
	smalti_chart_print(page, &chart);
	free(series);
}

static bool any(const struct smalti_run *runs, int count, bool captions)
{
	for (int i = 0; i < count; i++) {
		const struct smalti_run *run = &runs[i];
		const struct smalti_run_sample *last =
		    run->count ? &run->points[run->count - 1].sample : NULL;
		if (last && (captions ? last->captions : last->pictures) > 0)
			return true;
	}
	return false;
}

/* A process that found nothing left to do has nothing to show. */
static bool has_worked(const struct smalti_run *run)
{
	const struct smalti_run_sample *last = run->count ? &run->points[run->count - 1].sample : NULL;
	return last && (last->items || last->failures || last->captions || last->pictures);
}

static bool have_worked(const struct smalti_run *runs, int count)
{
	bool worked = false;
	for (int i = 0; i < count; i++)
		worked = worked || has_worked(&runs[i]);
	return worked;
}

void smalti_report_sessions(FILE *page, const struct smalti_runs *runs)
{
	struct smalti_span span;
	for (int first = 0, next; first < runs->count; first = next) {
		next = session_end(runs, first, &span);
		const struct smalti_run *own = &runs->items[first];
		const int count = next - first;
		if (!have_worked(own, count))
			continue;
		fputs("<h2>Over time: from ", page);
		print_date(page, span.begin);
		fprintf(page, ", %d process%s</h2>\n<div class=\"charts\">\n", count, count == 1 ? "" : "es");
		print_session_chart(page, "Items per second", own, count, &span, "items", smalti_series_rate,
				    smalti_number_short);
		print_session_chart(page, "Memory", own, count, &span, "resident", smalti_series_level,
				    smalti_number_bytes);
		if (any(own, count, true))
			print_session_chart(page, "Tokens per second", own, count, &span, "tokens",
					    smalti_series_rate, smalti_number_short);
		if (any(own, count, false))
			print_session_chart(page, "Pixels per second", own, count, &span, "pixels",
					    smalti_series_rate, smalti_number_short);
		fputs("</div>\n", page);
	}
}

/* Histograms of all runs together. */

static void print_lengths(FILE *page, const struct smalti_runs *runs)
{
	struct smalti_bar bars[BARS] = {{.label = ""}};
	int64_t longest = 0, width = 1;
	for (int i = 0; i < runs->count; i++)
		for (int j = 0; j < runs->items[i].lengths.count; j++)
			longest = runs->items[i].lengths.items[j].first > longest
				      ? runs->items[i].lengths.items[j].first
				      : longest;
	while (longest / width >= BARS)
		width += width < 5 ? 1 : width < 1000 ? 5 : width;
	for (int i = 0; i < runs->count; i++)
		for (int j = 0; j < runs->items[i].lengths.count; j++) {
			const struct smalti_run_count *length = &runs->items[i].lengths.items[j];
			bars[length->first / width].value += (double)length->count;
		}
	const int count = (int)(longest / width) + 1;
	for (int i = 0; i < count; i++)
		snprintf(bars[i].label, sizeof(bars[i].label), "%" PRId64, i * width);
	smalti_bars_print(page, "Caption lengths",
			  width == 1 ? "tokens"
				     : "tokens, at least; captions of so many and more up to the next bar",
			  bars, count);
}

static int by_ratio(const void *a, const void *b)
{
	const struct smalti_run_count *first = a, *second = b;
	const double left = (double)first->first * (double)second->second;
	const double right = (double)second->first * (double)first->second;
	return left < right ? -1 : left > right;
}

static void print_bins(FILE *page, const struct smalti_runs *runs)
{
	struct smalti_run_count bins[BINS + 1];
	struct smalti_bar bars[BINS + 1];
	int count = 0;
	for (int i = 0; i < runs->count; i++)
		for (int j = 0; j < runs->items[i].bins.count; j++) {
			const struct smalti_run_count *bin = &runs->items[i].bins.items[j];
			int at = 0;
			while (at < count && (bins[at].first != bin->first || bins[at].second != bin->second))
				at++;
			if (at == count && count <= BINS)
				bins[count++] = (struct smalti_run_count){bin->first, bin->second, 0};
			if (at < count)
				bins[at].count += bin->count;
		}
	if (!count)
		return;
	qsort(bins, (size_t)count, sizeof(*bins), by_ratio);
	for (int i = 0; i < count; i++) {
		bars[i].value = (double)bins[i].count;
		snprintf(bars[i].label, sizeof(bars[i].label), "%" PRId64 "\xc3\x97%" PRId64,
			 bins[i].second % 1000000, bins[i].first % 1000000);
	}
	smalti_bars_print(page, "Bins", "width \xc3\x97 height in pixels, from wide to tall", bars, count);
}

void smalti_report_histograms(FILE *page, const struct smalti_runs *runs)
{
	const bool captions = any(runs->items, runs->count, true),
		   pictures = any(runs->items, runs->count, false);
	if (!captions && !pictures)
		return;
	fputs("<h2>Captions and pictures</h2>\n<div class=\"charts\">\n", page);
	if (captions)
		print_lengths(page, runs);
	if (pictures)
		print_bins(page, runs);
	fputs("</div>\n", page);
}

/* Each run alone. */

static void print_levels(FILE *page, const struct smalti_run *run, const struct smalti_span *span)
{
	static const char *const keys[][2] = {{"waiting", "waiting for their bytes"},
					      {"computing", "being computed"},
					      {"finished", "waiting for the writer"}};
	struct smalti_series series[3];
	for (int i = 0; i < 3; i++) {
		snprintf(series[i].name, sizeof(series[i].name), "%s", keys[i][1]);
		smalti_series_level(run, keys[i][0], span, &series[i]);
	}
	const struct smalti_chart chart = {.title = "Queues: items",
					   .seconds = span->seconds,
					   .count = 3,
					   .series = series,
					   .format = smalti_number_short};
	smalti_chart_print(page, &chart);
}

static void print_stages(FILE *page, const struct smalti_run *run, const struct smalti_span *span)
{
	static const char *const keys[][2] = {
	    {"text", "T5"}, {"vae", "VAE"}, {"decode", "reading pictures"}, {"write", "writing"}};
	struct smalti_series series[4];
	for (int i = 0; i < 4; i++) {
		snprintf(series[i].name, sizeof(series[i].name), "%s", keys[i][1]);
		smalti_series_rate(run, keys[i][0], span, &series[i]);
	}
	const struct smalti_chart chart = {.title = "Stages: threads at work",
					   .seconds = span->seconds,
					   .count = 4,
					   .series = series,
					   .stacked = true,
					   .format = smalti_number_short};
	smalti_chart_print(page, &chart);
}

static void print_workers(FILE *page, const struct smalti_run *run, const struct smalti_span *span)
{
	const int count = run->worker_count < STRIPS ? run->worker_count : STRIPS;
	struct smalti_series *rows = calloc((size_t)count + 1, sizeof(*rows));
	for (int i = 0; rows && i < count; i++) {
		snprintf(rows[i].name, sizeof(rows[i].name), "%.9s", run->workers[i]);
		smalti_series_busy(run, i, span, &rows[i]);
	}
	if (rows && count)
		smalti_strips_print(page, "Workers: the stronger, the busier", span->seconds, rows, count);
	free(rows);
}

static double busy_share(const struct smalti_run *run)
{
	double busy = 0;
	const struct smalti_run_point *last = run->count ? &run->points[run->count - 1] : NULL;
	for (int i = 0; last && i < run->worker_count; i++)
		busy += run->busy[(run->count - 1) * run->worker_count + i];
	return last && last->time > 0 && run->worker_count ? busy / last->time / run->worker_count : 0;
}

static void print_row(FILE *page, const struct smalti_run *run)
{
	char name[NAME], text[SMALTI_NUMBER];
	const struct smalti_run_point none = {.time = 0};
	const struct smalti_run_point *last = run->count ? &run->points[run->count - 1] : &none;
	int64_t memory = 0;
	for (int64_t i = 0; i < run->count; i++)
		memory = run->points[i].resident > memory ? run->points[i].resident : memory;
	name_run(run, name);
	fputs("<tr><td>", page);
	smalti_page_text(page, name);
	fputs("</td><td>", page);
	print_date(page, run->began);
	fprintf(page, "</td><td class=\"n\">%s</td><td>", smalti_number_seconds(last->time, text));
	smalti_page_text(page, *run->end ? run->end : "no end: killed, or still at work");
	const int64_t counts[] = {last->sample.items, last->sample.captions, last->sample.pictures,
				  last->sample.failures};
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++)
		fprintf(page, "</td><td class=\"n\">%s", smalti_number_count(counts[i], text));
	fprintf(page, "</td><td class=\"n\">%s",
		smalti_number_short(last->time > 0 ? (double)last->sample.items / last->time : 0, text));
	fprintf(page, "</td><td class=\"n\">%.0f %%</td><td class=\"n\">%s</td></tr>\n",
		100 * busy_share(run), smalti_number_bytes((double)memory, text));
}

static void print_table(FILE *page, const struct smalti_runs *runs)
{
	fputs("<h2>Processes</h2>\n<div class=\"wide\"><table><thead><tr><th>process</th><th>began</th><th "
	      "class=\"n\">ran</th><th>end</th><th class=\"n\">items</th><th class=\"n\">captions</th><th "
	      "class=\"n\">pictures</th><th class=\"n\">failures</th><th class=\"n\">items/s</th><th "
	      "class=\"n\">workers busy</th><th class=\"n\">memory</th></tr></thead><tbody>\n",
	      page);
	for (int i = 0; i < runs->count; i++)
		print_row(page, &runs->items[i]);
	fputs("</tbody></table></div>\n", page);
	if (runs->unreadable)
		fprintf(page, "<p class=\"note\">%d files in runs/ cannot be read.</p>\n", runs->unreadable);
}

static void print_run(FILE *page, const struct smalti_run *run, bool open)
{
	char name[NAME];
	const struct smalti_span span = smalti_span_of(run);
	name_run(run, name);
	fprintf(page, "<details%s><summary>", open ? " open" : "");
	smalti_page_text(page, name);
	fputs(", from ", page);
	print_date(page, run->began);
	fputs("</summary>\n<div class=\"charts\">\n", page);
	print_stages(page, run, &span);
	print_levels(page, run, &span);
	print_workers(page, run, &span);
	fprintf(page, "</div>\n<details%s><summary>Data set, model, options</summary><pre>",
		open ? " open" : "");
	smalti_page_text(page, run->program);
	if (*run->policy)
		fputs(", policy ", page);
	smalti_page_text(page, run->policy);
	fputs("\n", page);
	for (char *rest = run->options, *line; (line = strsep(&rest, "\n"));) {
		for (; *line == '\t'; line++)
			fputs("  ", page);
		smalti_page_text(page, line);
		fputs("\n", page);
	}
	fputs("</pre></details>\n", page);
	if (run->unreadable)
		fprintf(page, "<p class=\"note\">%" PRId64 " lines of its log cannot be read.</p>\n",
			run->unreadable);
	fputs("</details>\n", page);
}

/* The last ones: they are what somebody wants to know about. */
void smalti_report_runs(FILE *page, const struct smalti_runs *runs)
{
	int worked = 0, before = 0;
	for (int i = 0; i < runs->count; i++)
		worked += has_worked(&runs->items[i]);
	if (!runs->count)
		return;
	print_table(page, runs);
	if (!worked)
		return;
	fputs("<h2>Each process</h2>\n", page);
	if (worked > SHOWN)
		fprintf(page, "<p class=\"note\">The last %d of %d.</p>\n", SHOWN, worked);
	for (int i = 0; i < runs->count; i++) {
		if (!has_worked(&runs->items[i]))
			continue;
		const int left = worked - before++;
		if (left <= SHOWN)
			print_run(page, &runs->items[i], left <= OPEN);
	}
}
