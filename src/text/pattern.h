/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "text/utf8.h"

/* Regular expressions over valid UTF-8 with the meaning of Python's re: \w \d \b know Unicode, `.` matches a
 * newline, too. White space has a class of its own, because \s differs. */
#define SMALTI_SPACES                                                                                        \
	"\\t-\\r\\x1c-\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{"   \
	"3000}"
#define SMALTI_SPACE     "[" SMALTI_SPACES "]"
#define SMALTI_NON_SPACE "[^" SMALTI_SPACES "]"

struct smalti_pattern;

struct smalti_pattern *smalti_pattern_new(const char *expression, struct smalti_error *error);
void smalti_pattern_free(struct smalti_pattern *pattern); /* NULL is fine */

/* Replaces every match by `replacement`, in which $1 is the first group. SMALTI_EUNSUPPORTED: a match takes
 * too many steps. */
int smalti_pattern_replace(const struct smalti_pattern *pattern, const char *replacement,
			   struct smalti_string *string, struct smalti_error *error);

/* Where a match and its first group (empty if there is none) begin and end. */
struct smalti_pattern_match {
	size_t start, end, group_start, group_end;
};

/* Tells in *found whether a match begins exactly at `at`. */
int smalti_pattern_match(const struct smalti_pattern *pattern, const struct smalti_string *string, size_t at,
			 bool *found, struct smalti_pattern_match *match, struct smalti_error *error);
