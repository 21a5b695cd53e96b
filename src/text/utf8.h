/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Owned, valid UTF-8 bytes (NUL is a character like any other), with a NUL behind them. The functions change
 * it in place; they fail only without memory. Free bytes with free(). */
struct smalti_string {
	char *bytes;
	size_t length;
};

/* Copies any bytes; those that are not UTF-8 become U+FFFD. */
int smalti_string_copy(struct smalti_string *string, const char *text, size_t length,
		       struct smalti_error *error);

/* Lowers as Python's str.lower(), in no particular language: final sigma and the dot of I are respected. */
int smalti_string_lower(struct smalti_string *string, struct smalti_error *error);
/* Strips as Python's str.strip(). */
void smalti_string_strip(struct smalti_string *string);
/* Makes Normalization form C. */
int smalti_string_compose(struct smalti_string *string, struct smalti_error *error);

/* What is written to the stream between the two calls becomes the new string, unless `status` is not 0: then
 * the string stays. The second call returns `status`, or -1 with an error. */
struct smalti_rewriting {
	FILE *to;
	char *bytes;
	size_t length;
};
int smalti_rewrite(struct smalti_rewriting *rewriting, struct smalti_error *error);
int smalti_rewritten(struct smalti_rewriting *rewriting, struct smalti_string *string, int status,
		     struct smalti_error *error);

/* Writes one character as UTF-8; an invalid one (a surrogate, too large) as U+FFFD. */
void smalti_put_character(FILE *to, uint32_t character);
