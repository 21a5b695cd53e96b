/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_REPORT_CHART_H
#define SMALTI_CLI_REPORT_CHART_H

#include "cli/numbers.h"

#include <stdbool.h>
#include <stdio.h>

/* Charts as SVG within a page. Colours are those of its style: 0 to 7, then again. */

enum { SMALTI_CHART_COLUMNS = 160, SMALTI_CHART_COLOURS = 8 };

struct smalti_series {
	char name[64];
	double values[SMALTI_CHART_COLUMNS]; /* NAN: none */
};

struct smalti_chart {
	const char *title;
	double seconds; /* what the columns are of */
	int count;
	const struct smalti_series *series;
	bool stacked; /* areas on top of each other, else lines */
	const char *(*format)(double value, char text[SMALTI_NUMBER]);
};

void smalti_chart_print(FILE *page, const struct smalti_chart *chart);

/* Bars; labels are texts. */
struct smalti_bar {
	char label[32];
	double value;
};
void smalti_bars_print(FILE *page, const char *title, const char *axis, const struct smalti_bar *bars,
		       int count);

/* A row per name, dark where its share (0 to 1) of a column is large. */
void smalti_strips_print(FILE *page, const char *title, double seconds, const struct smalti_series *rows,
			 int count);

#endif
