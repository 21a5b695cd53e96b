/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

enum { SMALTI_PROGRESS_DETAIL = 48 };

/* How far a long job is, for people: on a terminal a bar that is redrawn at most ten times a second,
 * elsewhere a line every five seconds, and nothing in the first two. The time left follows from the speed of
 * the last 15 to 30 seconds. When nothing moves for a minute it says so. Used from one thread. */
struct smalti_progress {
	FILE *stream;
	const char *unit;      /* "images": belongs to the caller */
	double (*clock)(void); /* seconds */
	bool terminal, quiet;
	double start, shown;         /* shown: when last written, before start when never */
	int64_t done, total, failed; /* failed: of those done; the caller sets it */
	double begun;                /* what is done of unfinished units, in units */
	char detail[SMALTI_PROGRESS_DETAIL];
	struct {
		double time, units;
	} recent[2]; /* two moments, from start on; the older one is what speed is measured from */
	struct {
		double time, units; /* when anything changed last, and to what */
		char detail[SMALTI_PROGRESS_DETAIL];
		bool reported; /* that nothing did for long */
	} moved;
	int drawn; /* columns of the bar that is on the terminal now, 0: none */
};

/* `quiet` shows only smalti_progress_print()'s lines, and that nothing moves. */
void smalti_progress_begin(struct smalti_progress *progress, FILE *stream, const char *unit, bool quiet);

/* Tells that `done` of `total` units (-1: not known) are done. Call it a few times a second, also when
 * nothing moved, to keep the clock going. */
void smalti_progress_update(struct smalti_progress *progress, int64_t done, int64_t total);

/* Tells how much of unfinished units is done (0.3: of one unit, or 0.1 of each of three), and by `detail`
 * what is being done, "step 3 of 20". The next update shows it. */
void smalti_progress_within(struct smalti_progress *progress, double begun, const char *detail);

/* Prints a line without breaking the bar; no newline in it. */
void smalti_progress_print(struct smalti_progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Says once (*said), when it has become long, that a command waits for a directory of features that another
 * process changes. */
void smalti_progress_locked(struct smalti_progress *progress, const char *command, const char *directory,
			    const char *holder, double seconds, bool *said);

/* Removes the bar and leaves a line that sums up, if anything was shown at all. */
void smalti_progress_end(struct smalti_progress *progress);
