/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <sys/stat.h>

/* Where lines of a file begin: every step-th of them. The step is the smallest power of two that leaves at
 * most SMALTI_LINE_STARTS of them, so that the index of any file takes the same memory. */
enum { SMALTI_LINE_STARTS = 4096 };

struct smalti_line_index {
	int64_t lines, step;
	int64_t starts[SMALTI_LINE_STARTS]; /* bytes before lines 0, step, 2 × step, … */
	uint64_t digest;                    /* XXH3 of the whole file */
	struct stat file;
};

/* Reads a regular file, whose position stays where it is; `path` is for messages. */
int smalti_line_index_make(struct smalti_line_index *index, int fd, const char *path,
			   struct smalti_error *error);
/* Fails if the file has changed since. */
int smalti_line_index_check(const struct smalti_line_index *index, int fd, const char *path,
			    struct smalti_error *error);
