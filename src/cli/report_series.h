/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_REPORT_SERIES_H
#define SMALTI_CLI_REPORT_SERIES_H

#include "cli/report_chart.h"
#include "store/run_read.h"

/* What runs have measured as columns of a chart: column i of n is the time from begin + i·width on. */
struct smalti_span {
	double begin, seconds; /* since 1970 */
};

/* Of a run's time; at least a millisecond. */
struct smalti_span smalti_span_of(const struct smalti_run *run);

/* How fast a counter grew, per second; NAN where the run was not. `key` as in smalti_run_fields. */
void smalti_series_rate(const struct smalti_run *run, const char *key, const struct smalti_span *span,
			struct smalti_series *series);
/* The seconds per second that a worker was busy, 0 to 1. */
void smalti_series_busy(const struct smalti_run *run, int worker, const struct smalti_span *span,
			struct smalti_series *series);
/* The largest value in each column of what goes up and down; "resident" is one, too. */
void smalti_series_level(const struct smalti_run *run, const char *key, const struct smalti_span *span,
			 struct smalti_series *series);

#endif
