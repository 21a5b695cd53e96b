/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"

#include <inttypes.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

static const double SILENT_SECONDS = 2, REDRAW_SECONDS = 0.1, LINE_SECONDS = 5;
enum { BAR = 30, WIDEST = 200, FALLBACK_WIDTH = 80 };

static double now(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void smalti_progress_begin(struct smalti_progress *progress, FILE *stream, const char *unit, bool quiet)
{
	*progress = (struct smalti_progress){
	    .stream = stream,
	    .unit = unit,
	    .clock = now,
	    .terminal = isatty(fileno(stream)),
	    .quiet = quiet,
	    .start = now(),
	    .shown = -1,
	    .total = -1,
	};
}

/* "7 s", "3:05", "2:03:04", "over 1000 h" */
static void describe_time(double seconds, char *text, size_t size)
{
	if (seconds > 3600e3) {
		snprintf(text, size, "over 1000 h");
		return;
	}
	int64_t whole = (int64_t)(seconds + 0.5);
	if (whole < 60)
		snprintf(text, size, "%" PRId64 " s", whole);
	else if (whole < 3600)
		snprintf(text, size, "%" PRId64 ":%02" PRId64, whole / 60, whole % 60);
	else
		snprintf(text, size, "%" PRId64 ":%02" PRId64 ":%02" PRId64, whole / 3600, whole / 60 % 60,
			 whole % 60);
}

/* "12/40 images, 1.52/s, 18 s left", or how long it took */
static void describe(const struct smalti_progress *progress, double elapsed, bool last, char *text,
		     size_t size)
{
	double rate = (double)progress->done / elapsed;
	int64_t left = progress->total - progress->done;
	char total[32] = "", speed[32] = "", time[48] = "", rest[64] = "";
	if (progress->total >= 0)
		snprintf(total, sizeof(total), "/%" PRId64, progress->total);
	if (rate > 0)
		snprintf(speed, sizeof(speed), rate < 100 ? ", %.3g/s" : ", %.0f/s", rate);
	if (last || (rate > 0 && left > 0))
		describe_time(last ? elapsed : (double)left / rate, time, sizeof(time));
	if (last)
		snprintf(rest, sizeof(rest), ", took %s", time);
	else if (time[0])
		snprintf(rest, sizeof(rest), ", %s left", time);
	snprintf(text, size, "%" PRId64 "%s %s%s%s", progress->done, total, progress->unit, speed, rest);
}

static int terminal_width(FILE *stream)
{
	struct winsize window;
	if (ioctl(fileno(stream), TIOCGWINSZ, &window) || window.ws_col < 1)
		return FALLBACK_WIDTH;
	return window.ws_col < WIDEST ? window.ws_col : WIDEST;
}

static void erase(struct smalti_progress *progress)
{
	if (progress->drawn)
		fprintf(progress->stream, "\r%*s\r", progress->drawn, "");
	progress->drawn = 0;
}

/* "[=====>    ] 12/40 images, ...", within the window, for a wrapped line cannot be redrawn. */
static void draw(struct smalti_progress *progress, const char *text)
{
	char line[WIDEST + 1] = "";
	int length = 0;
	if (progress->total > 0) {
		int filled = (int)((double)BAR * (double)progress->done / (double)progress->total);
		char bar[BAR + 1];
		memset(bar, ' ', BAR);
		memset(bar, '=', (size_t)filled);
		if (filled < BAR)
			bar[filled] = '>';
		bar[BAR] = '\0';
		length = snprintf(line, sizeof(line), "[%s] ", bar);
	}
	snprintf(line + length, sizeof(line) - (size_t)length, "%s", text);
	line[terminal_width(progress->stream) - 1] = '\0';
	int columns = (int)strlen(line);
	int rest = progress->drawn > columns ? progress->drawn - columns : 0;
	fprintf(progress->stream, "\r%s%*s", line, rest, "");
	progress->drawn = columns;
}

static void show(struct smalti_progress *progress, double time, bool last)
{
	char text[WIDEST];
	describe(progress, time - progress->start, last, text, sizeof(text));
	if (progress->terminal && !last) {
		draw(progress, text);
	} else {
		erase(progress);
		fprintf(progress->stream, "%s\n", text);
	}
	fflush(progress->stream);
	progress->shown = time;
}

void smalti_progress_update(struct smalti_progress *progress, int64_t done, int64_t total)
{
	progress->total = total;
	progress->done = total >= 0 && done > total ? total : done;
	if (progress->quiet)
		return;
	double time = progress->clock();
	double pause = progress->terminal ? REDRAW_SECONDS : LINE_SECONDS;
	bool shown = progress->shown >= progress->start;
	if (shown ? time - progress->shown >= pause : time - progress->start >= SILENT_SECONDS)
		show(progress, time, false);
}

void smalti_progress_print(struct smalti_progress *progress, const char *format, ...)
{
	erase(progress);
	va_list args;
	va_start(args, format);
	vfprintf(progress->stream, format, args);
	va_end(args);
	fputc('\n', progress->stream);
	fflush(progress->stream);
}

void smalti_progress_end(struct smalti_progress *progress)
{
	if (!progress->quiet && progress->shown >= progress->start)
		show(progress, progress->clock(), true);
}
