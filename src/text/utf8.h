/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TEXT_UTF8_H
#define SMALTI_TEXT_UTF8_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Owned bytes that are valid UTF-8 (NUL is a character like any other). The functions change it in place;
 * they fail only for want of memory. Free bytes with free(). */
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

/* What `write` writes becomes the new string. It returns 0 or -1 with an error. */
int smalti_string_rewrite(struct smalti_string *string,
			  int (*write)(const void *context, const struct smalti_string *from, FILE *to,
				       struct smalti_error *error),
			  const void *context, struct smalti_error *error);

/* One character as UTF-8; what is none (a surrogate, too large) as U+FFFD. */
void smalti_put_character(FILE *to, uint32_t character);

#endif
