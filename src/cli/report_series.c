/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_series.h"

#include <math.h>
#include <string.h>

struct smalti_span smalti_span_of(const struct smalti_run *run)
{
	const double seconds = run->count ? run->points[run->count - 1].time : 0;
	return (struct smalti_span){run->began, fmax(seconds, 1e-3)};
}

/* Where a number is: a field of the samples, or a worker's. */
struct source {
	const struct smalti_run *run;
	const struct smalti_run_field *field; /* NULL: the resident memory, or `worker` */
	int worker;                           /* -1: none */
};

static struct source find(const struct smalti_run *run, const char *key)
{
	struct source source = {.run = run, .worker = -1};
	for (int i = 0; i < SMALTI_RUN_FIELDS; i++)
		if (strcmp(smalti_run_fields[i].key, key) == 0)
			source.field = &smalti_run_fields[i];
	return source;
}

static double value_of(const struct source *source, int64_t index)
{
	const struct smalti_run *run = source->run;
	if (source->worker >= 0)
		return run->busy[index * run->worker_count + source->worker];
	if (!source->field)
		return (double)run->points[index].resident;
	const void *at = (const char *)&run->points[index].sample + source->field->offset;
	return source->field->real ? *(const double *)at : (double)*(const int64_t *)at;
}

/* The last point at that time or before; -1: none. */
static int64_t point_at(const struct smalti_run *run, double time)
{
	int64_t low = -1, high = run->count;
	while (high - low > 1) {
		const int64_t middle = low + (high - low) / 2;
		if (run->points[middle].time <= time)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* A counter grows evenly between two points; it is 0 when the run begins. */
static double counter_at(const struct source *source, double time)
{
	const struct smalti_run *run = source->run;
	const int64_t before = point_at(run, time);
	if (before == run->count - 1)
		return value_of(source, before);
	const double from = before < 0 ? 0 : run->points[before].time, to = run->points[before + 1].time;
	const double low = before < 0 ? 0 : value_of(source, before), high = value_of(source, before + 1);
	return to > from ? low + (high - low) * (time - from) / (to - from) : high;
}

static void rate(const struct source *source, const struct smalti_span *span, struct smalti_series *series)
{
	const struct smalti_run *run = source->run;
	const double width = span->seconds / SMALTI_CHART_COLUMNS, offset = span->begin - run->began;
	const double last = run->count ? run->points[run->count - 1].time : -1;
	for (int i = 0; i < SMALTI_CHART_COLUMNS; i++) {
		const double from = fmax(offset + i * width, 0), to = fmin(offset + (i + 1) * width, last);
		series->values[i] = to > from && run->count
					? (counter_at(source, to) - counter_at(source, from)) / (to - from)
					: NAN;
	}
}

void smalti_series_rate(const struct smalti_run *run, const char *key, const struct smalti_span *span,
			struct smalti_series *series)
{
	const struct source source = find(run, key);
	rate(&source, span, series);
}

void smalti_series_busy(const struct smalti_run *run, int worker, const struct smalti_span *span,
			struct smalti_series *series)
{
	const struct source source = {.run = run, .worker = worker};
	rate(&source, span, series);
	for (int i = 0; i < SMALTI_CHART_COLUMNS; i++)
		series->values[i] = isnan(series->values[i]) ? 0 : fmin(fmax(series->values[i], 0), 1);
}

void smalti_series_level(const struct smalti_run *run, const char *key, const struct smalti_span *span,
			 struct smalti_series *series)
{
	const struct source source = find(run, key);
	const double width = span->seconds / SMALTI_CHART_COLUMNS, offset = span->begin - run->began;
	for (int i = 0; i < SMALTI_CHART_COLUMNS; i++) {
		const double from = offset + i * width, to = from + width;
		int64_t index = point_at(run, from);
		const bool there =
		    run->count && to >= run->points[0].time && from <= run->points[run->count - 1].time;
		series->values[i] = there && index >= 0 ? value_of(&source, index) : NAN;
		for (index++; there && index < run->count && run->points[index].time < to; index++)
			series->values[i] =
			    fmax(series->values[i], value_of(&source, index)); /* ignores NAN */
	}
}
