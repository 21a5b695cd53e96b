/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_PROGRESS_H
#define SMALTI_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* How far a long job is, for people: on a terminal a bar that is redrawn at most ten times a second,
 * elsewhere a line every five seconds, and nothing in the first two. Used from one thread. */
struct smalti_progress {
	FILE *stream;
	const char *unit;      /* "images": belongs to the caller */
	double (*clock)(void); /* seconds */
	bool terminal, quiet;
	double start, shown; /* shown: when last written, before start when never */
	int64_t done, total;
	int drawn; /* columns of the bar that is on the terminal now, 0: none */
};

/* `quiet` shows nothing but smalti_progress_print()'s lines. */
void smalti_progress_begin(struct smalti_progress *progress, FILE *stream, const char *unit, bool quiet);

/* `done` of `total` units (-1: nobody knows how many) are through. Call it also when nothing moved, a
 * few times a second, to keep the clock going. */
void smalti_progress_update(struct smalti_progress *progress, int64_t done, int64_t total);

/* A line of its own that does not break the bar; no newline in it. */
void smalti_progress_print(struct smalti_progress *progress, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Takes the bar away and leaves a line that sums up, if anything was shown at all. */
void smalti_progress_end(struct smalti_progress *progress);

#endif
