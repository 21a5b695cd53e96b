/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/progress.h"
#include "base/base.h"

#include "base/clock.h"
#include "cli/numbers.h"

#include <math.h>
#include <stdarg.h>
#include <sys/ioctl.h>

static const double SILENT_SECONDS = 2, REDRAW_SECONDS = 0.1, LINE_SECONDS = 5, RECENT_SECONDS = 15,
		    STALL_SECONDS = 60, LOCKED_SECONDS = 3 /* a shard is committed in less */;
enum { BAR = 30, MIN_BAR = 10, WIDEST = 200, FALLBACK_WIDTH = 80 };

void smalti_progress_begin(struct smalti_progress *progress, FILE *stream, const char *unit, bool quiet)
{
	*progress = (struct smalti_progress){
	    .stream = stream,
	    .unit = unit,
	    .clock = smalti_now,
	    .terminal = isatty(fileno(stream)),
	    .quiet = quiet,
	    .start = smalti_now(),
	    .shown = -1,
	    .moved = {.time = -1},
	    .total = -1,
	};
}

static double units(const struct smalti_progress *progress)
{
	const double all = (double)progress->done + progress->begun;
	return progress->total >= 0 && all > (double)progress->total ? (double)progress->total : all;
}

/* Returns the seconds that the rest takes at the present speed; 0: not known. */
static double time_left(const struct smalti_progress *progress, double elapsed)
{
	const double made = units(progress) - progress->recent[0].units;
	const double left = (double)progress->total - units(progress);
	return made > 0 && left > 0 ? left / made * (elapsed - progress->recent[0].time) : 0;
}

static void remember(struct smalti_progress *progress, double elapsed)
{
	if (elapsed - progress->recent[1].time < RECENT_SECONDS)
		return;
	progress->recent[0] = progress->recent[1];
	progress->recent[1].time = elapsed;
	progress->recent[1].units = units(progress);
}

#define append(text, ...) smalti_append(text, WIDEST, ", ", __VA_ARGS__)

/* Writes "12/40 images, 2 failed, 31 %, step 3 of 20, 1.52/s, 18 s left", or how long it took. A single unit
 * that says what it does is not counted. */
static void describe(const struct smalti_progress *progress, double elapsed, bool last, char text[WIDEST])
{
	const bool inside = progress->detail[0] && !last;
	const double rate = units(progress) / elapsed;
	const double left = last ? 0 : time_left(progress, elapsed);
	char time[SMALTI_NUMBER];
	text[0] = '\0';
	if (progress->total < 0)
		append(text, "%" PRId64 " %s", progress->done, progress->unit);
	else if (progress->total != 1 || !inside)
		append(text, "%" PRId64 "/%" PRId64 " %s", progress->done, progress->total, progress->unit);
	if (progress->failed)
		append(text, "%" PRId64 " failed", progress->failed);
	if (inside && progress->total > 0)
		append(text, "%d %%", (int)(100 * units(progress) / (double)progress->total));
	if (inside)
		append(text, "%s", progress->detail);
	if (progress->done > 0)
		append(text, rate < 100 ? "%.3g/s" : "%.0f/s", rate);
	if (last)
		append(text, "took %s", smalti_number_seconds(round(elapsed), time));
	else if (left > 3600e3)
		append(text, "over 1000 h left");
	else if (left > 0)
		append(text, "%s left", smalti_number_seconds(round(left), time));
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

/* Draws "[=====>    ] 12/40 images, ..." within the window, for a wrapped line cannot be redrawn. */
static void draw(struct smalti_progress *progress, const char *text)
{
	char line[WIDEST + BAR + 8] = "";
	const int room = terminal_width(progress->stream) - 1;
	int length = 0;
	if (progress->total > 0) {
		const int beside = room - (int)strlen(text) - 3;
		const int columns = beside > BAR ? BAR : beside < MIN_BAR ? MIN_BAR : beside;
		const int filled = (int)((double)columns * units(progress) / (double)progress->total);
		char bar[BAR + 1];
		memset(bar, '=', (size_t)filled);
		bar[filled] = '>';
		length = snprintf(line, sizeof(line), "[%-*.*s] ", columns,
				  filled < columns ? filled + 1 : columns, bar);
	}
	snprintf(line + length, sizeof(line) - (size_t)length, "%s", text);
	line[room] = '\0';
	int columns = (int)strlen(line);
	int rest = progress->drawn > columns ? progress->drawn - columns : 0;
	fprintf(progress->stream, "\r%s%*s", line, rest, "");
	progress->drawn = columns;
}

static void show(struct smalti_progress *progress, double time, bool last)
{
	char text[WIDEST];
	describe(progress, time - progress->start, last, text);
	if (progress->terminal && !last) {
		draw(progress, text);
	} else {
		erase(progress);
		fprintf(progress->stream, "%s\n", text);
	}
	fflush(progress->stream);
	progress->shown = time;
}

/* Says once what is waited for when nothing has moved for long, even if no progress is wanted. */
static void on_progress(struct smalti_progress *progress, double time)
{
	if (fabs(units(progress) - progress->moved.units) > 0 || progress->moved.time < progress->start ||
	    strcmp(progress->detail, progress->moved.detail) != 0) {
		progress->moved.time = time;
		progress->moved.units = units(progress);
		progress->moved.reported = false;
		memcpy(progress->moved.detail, progress->detail, sizeof(progress->detail));
	}
	if (progress->moved.reported || time - progress->moved.time < STALL_SECONDS)
		return;
	progress->moved.reported = true;
	smalti_progress_print(progress, "smalti: nothing has moved for a minute: %s",
			      progress->detail[0] ? progress->detail : "waiting for the first task");
}

void smalti_progress_update(struct smalti_progress *progress, int64_t done, int64_t total)
{
	progress->total = total;
	progress->done = total >= 0 && done > total ? total : done;
	double time = progress->clock();
	on_progress(progress, time);
	if (progress->quiet)
		return;
	remember(progress, time - progress->start);
	double pause = progress->terminal ? REDRAW_SECONDS : LINE_SECONDS;
	bool shown = progress->shown >= progress->start;
	if (shown ? time - progress->shown >= pause : time - progress->start >= SILENT_SECONDS)
		show(progress, time, false);
}

void smalti_progress_within(struct smalti_progress *progress, double begun, const char *detail)
{
	progress->begun = begun > 0 ? begun : 0;
	snprintf(progress->detail, sizeof(progress->detail), "%s", detail);
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

void smalti_progress_locked(struct smalti_progress *progress, const char *command, const char *directory,
			    const char *holder, double seconds, bool *said)
{
	if (*said || seconds < LOCKED_SECONDS)
		return;
	*said = true;
	smalti_progress_print(progress,
			      "%s: waiting for %s, whose lock is held by %s; if that process is stopped, "
			      "let it go on or end it",
			      command, directory, holder);
}

void smalti_progress_end(struct smalti_progress *progress)
{
	if (!progress->quiet && progress->shown >= progress->start)
		show(progress, progress->clock(), true);
}
