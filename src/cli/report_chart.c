/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/report_chart.h"

#include "cli/report_html.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a chart in its own units: the plot and the margins for the numbers beside it. */
enum {
	WIDTH = 560,
	HEIGHT = 210,
	LEFT = 58,
	RIGHT = 12,
	TOP = 10,
	BOTTOM = 26,
	STRIP = 14,
	LETTER = 7,
	LINE = 12
};
enum { PLOT_WIDTH = WIDTH - LEFT - RIGHT, PLOT_HEIGHT = HEIGHT - TOP - BOTTOM, TICKS = 4 };

/* The smallest of 1, 2, 5 x 10^n that has at most `most` steps up to the value. */
static double step_of(double value, int most)
{
	double step = pow(10, floor(log10(value / most)));
	if (step * most < value)
		step *= 2;
	if (step * most < value)
		step *= 2.5;
	if (step * most < value)
		step *= 2;
	return step;
}

static void begin(FILE *page, const char *title, int height)
{
	fputs("<figure style=\"margin:0\"><h3>", page);
	smalti_page_text(page, title);
	fprintf(page, "</h3>\n<svg viewBox=\"0 0 %d %d\" role=\"img\"><title>", WIDTH, height);
	smalti_page_text(page, title);
	fputs("</title>\n", page);
}

static void print_rows(FILE *page, double top, const char *(*format)(double value, char text[SMALTI_NUMBER]))
{
	char text[SMALTI_NUMBER];
	double unit = 1; /* of bytes: in steps of 1024 */
	while (format == smalti_number_bytes && top / unit >= 1024)
		unit *= 1024;
	const double step = step_of(top / unit, TICKS) * unit;
	for (int i = 0; i * step <= top * 1.0001; i++) {
		const double value = i * step;
		const double y = TOP + PLOT_HEIGHT * (1 - value / top);
		fprintf(page,
			"<path class=\"grid\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" "
			"text-anchor=\"end\">%s</text>\n",
			LEFT, y, WIDTH - RIGHT, LEFT - 6, y + 4, format(value, text));
	}
}

/* Seconds, minutes or hours. */
static void print_times(FILE *page, double seconds, int height)
{
	const double unit = seconds > 3 * 3600 ? 3600 : seconds > 3 * 60 ? 60 : 1;
	const char *name = unit > 60 ? "h" : unit > 1 ? "min" : "s";
	const double step = step_of(seconds / unit, 6);
	for (int i = 0; i * step * unit <= seconds * 1.0001; i++)
		fprintf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%.4g%s%s</text>\n",
			LEFT + PLOT_WIDTH * i * step * unit / seconds, height - 8, i * step, i ? " " : "",
			i ? name : "");
}

static double x_of(int column)
{
	return LEFT + PLOT_WIDTH * (column + 0.5) / SMALTI_CHART_COLUMNS;
}

static double y_of(double value, double top)
{
	return TOP + PLOT_HEIGHT * (1 - value / top);
}

static void print_line(FILE *page, const struct smalti_series *series, int colour, double top)
{
	bool pen = false;
	fprintf(page, "<path class=\"s%d\" d=\"", colour % SMALTI_CHART_COLOURS);
	for (int i = 0; i < SMALTI_CHART_COLUMNS; i++) {
		if (!isnan(series->values[i]))
			fprintf(page, "%c%.1f %.1f", pen ? 'L' : 'M', x_of(i), y_of(series->values[i], top));
		pen = !isnan(series->values[i]);
	}
	fputs("\"/>\n", page);
}

/* From the sums below to those with it. */
static void print_area(FILE *page, const struct smalti_series *series, int colour, double top, double *below)
{
	fprintf(page, "<path class=\"f%d\" opacity=\".8\" d=\"", colour % SMALTI_CHART_COLOURS);
	for (int i = SMALTI_CHART_COLUMNS - 1; i >= 0; i--)
		fprintf(page, "%c%.1f %.1f", i == SMALTI_CHART_COLUMNS - 1 ? 'M' : 'L', x_of(i),
			y_of(below[i], top));
	for (int i = 0; i < SMALTI_CHART_COLUMNS; i++) {
		below[i] += isnan(series->values[i]) ? 0 : series->values[i];
		fprintf(page, "L%.1f %.1f", x_of(i), y_of(below[i], top));
	}
	fputs("Z\"/>\n", page);
}

static double highest(const struct smalti_chart *chart)
{
	double top = 0;
	for (int i = 0; i < SMALTI_CHART_COLUMNS; i++) {
		double sum = 0;
		for (int s = 0; s < chart->count; s++) {
			const double value = chart->series[s].values[i];
			if (isnan(value))
				continue;
			sum = chart->stacked ? sum + value : fmax(sum, value);
		}
		top = fmax(top, sum);
	}
	return top > 0 ? top * 1.04 : 1;
}

static void print_key(FILE *page, const struct smalti_chart *chart)
{
	if (chart->count < 2)
		return;
	fputs("<p class=\"key\">", page);
	for (int i = 0; i < chart->count; i++) {
		fprintf(page, "<i class=\"f%d\"></i>", i % SMALTI_CHART_COLOURS);
		smalti_page_text(page, chart->series[i].name);
	}
	fputs("</p>", page);
}

void smalti_chart_print(FILE *page, const struct smalti_chart *chart)
{
	const double top = highest(chart);
	double below[SMALTI_CHART_COLUMNS] = {0};
	begin(page, chart->title, HEIGHT);
	print_rows(page, top, chart->format);
	print_times(page, chart->seconds, HEIGHT);
	for (int i = 0; i < chart->count; i++) {
		if (chart->stacked)
			print_area(page, &chart->series[i], i, top, below);
		else
			print_line(page, &chart->series[i], i, top);
	}
	fputs("</svg>", page);
	print_key(page, chart);
	fputs("</figure>\n", page);
}

static int longest(const struct smalti_bar *bars, int count)
{
	int length = 0;
	for (int i = 0; i < count; i++)
		length = (int)strlen(bars[i].label) > length ? (int)strlen(bars[i].label) : length;
	return length;
}

static void print_label(FILE *page, const char *label, double x, bool slanted)
{
	const int y = HEIGHT - (slanted ? 14 : 8);
	if (slanted)
		fprintf(page,
			"<text x=\"%.1f\" y=\"%d\" text-anchor=\"end\" transform=\"rotate(-45 %.1f %d)\">",
			x + 4, y, x + 4, y);
	else
		fprintf(page, "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x, y);
	fprintf(page, "%s</text>\n", label);
}

void smalti_bars_print(FILE *page, const char *title, const char *axis, const struct smalti_bar *bars,
		       int count)
{
	double top = 1;
	char text[SMALTI_NUMBER];
	for (int i = 0; i < count; i++)
		top = fmax(top, bars[i].value * 1.04);
	const double width = (double)PLOT_WIDTH / count;
	const int length = longest(bars, count) * LETTER;
	const bool slanted = length > width; /* then more of them fit: so many lines as there are bars */
	const int every = 1 + (int)(slanted ? LINE / width : 0);
	begin(page, title, slanted ? HEIGHT + length * 7 / 10 : HEIGHT);
	print_rows(page, top, smalti_number_short);
	for (int i = 0; i < count; i++) {
		const double x = LEFT + width * i, y = y_of(bars[i].value, top);
		fprintf(page,
			"<rect class=\"f0\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"><title>%s: "
			"%s</title></rect>\n",
			x + width * 0.08, y, width * 0.84, HEIGHT - BOTTOM - y, bars[i].label,
			smalti_number_count((int64_t)bars[i].value, text));
		if (i % every == 0)
			print_label(page, bars[i].label, x + width / 2, slanted);
	}
	fprintf(page, "</svg><p class=\"key\">%s</p></figure>\n", axis);
}

/* Neighbours of one shade are one rectangle. */
static void print_strip(FILE *page, const struct smalti_series *row, double y)
{
	enum { SHADES = 10 };
	for (int i = 0, end; i < SMALTI_CHART_COLUMNS; i = end) {
		const int shade = (int)lround(fmin(fmax(row->values[i], 0), 1) * SHADES);
		for (end = i + 1; end < SMALTI_CHART_COLUMNS; end++)
			if ((int)lround(fmin(fmax(row->values[end], 0), 1) * SHADES) != shade)
				break;
		const double unit = (double)PLOT_WIDTH / SMALTI_CHART_COLUMNS;
		if (shade)
			fprintf(page,
				"<rect class=\"f0\" opacity=\"%.1f\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" "
				"height=\"%d\"/>\n",
				(double)shade / SHADES, LEFT + unit * i, y, unit * (end - i), STRIP - 2);
	}
}

void smalti_strips_print(FILE *page, const char *title, double seconds, const struct smalti_series *rows,
			 int count)
{
	const int height = TOP + STRIP * count + BOTTOM;
	begin(page, title, height);
	for (int i = 0; i < count; i++) {
		const double y = TOP + STRIP * i;
		fprintf(page, "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", LEFT - 6, y + STRIP - 4);
		smalti_page_text(page, rows[i].name);
		fputs("</text>\n", page);
		print_strip(page, &rows[i], y);
	}
	print_times(page, seconds, height);
	fputs("</svg></figure>\n", page);
}
