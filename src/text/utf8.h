/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Owned bytes that are valid UTF-8 (NUL is a character like any other), with a NUL behind them. The functions
 * change it in place; they fail only for want of memory. Free bytes with free(). */
struct smalti_string {
	char *bytes;
	size_t length;
};

/* A copy of any bytes; what is not UTF-8 becomes U+FFFD. */
int smalti_string_copy(struct smalti_string *string, const char *text, size_t length,
		       struct smalti_error *error);

/* Python's str.lower(), in no particular language: final sigma and the dot of I are respected. */
int smalti_string_lower(struct smalti_string *string, struct smalti_error *error);
/* Python's str.strip(). */
void smalti_string_strip(struct smalti_string *string);
/* Normalization form C. */
int smalti_string_compose(struct smalti_string *string, struct smalti_error *error);

/* What is written to the stream between the two becomes the new string, unless `status` is not 0: then it
 * stays as it was. The second returns `status`, or -1 with an error. */
struct smalti_rewriting {
	FILE *to;
	char *bytes;
	size_t length;
};
int smalti_rewrite(struct smalti_rewriting *rewriting, struct smalti_error *error);
int smalti_rewritten(struct smalti_rewriting *rewriting, struct smalti_string *string, int status,
		     struct smalti_error *error);

/* One character as UTF-8; what is none (a surrogate, too large) as U+FFFD. */
void smalti_put_character(FILE *to, uint32_t character);
