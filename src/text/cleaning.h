/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/generate.h"
#include "text/utf8.h"

/* One pass of diffusers' clean_caption: the 26 steps of docs/reference.md 2.3, in their order. Threads may
 * share one. */
struct smalti_cleaner;

struct smalti_cleaner *smalti_cleaner_new(struct smalti_error *error);
void smalti_cleaner_free(struct smalti_cleaner *cleaner); /* NULL is fine */

/* Runs ftfy.fix_text() with its defaults, but for two of its fixes. Line breaks stay: white space is evened
 * out later. Wrongly decoded text is not decoded again: captions are in lower case by then, which has
 * destroyed the bytes. */
int smalti_fix_text(struct smalti_string *string, struct smalti_error *error);

/* The text of HTML as BeautifulSoup's get_text() with html.parser has it: tags, comments and
 * declarations go, references are decoded, the contents of script, style, template, rt and rp go too.
 * What is no well-formed markup stays as text. */
struct smalti_html;

struct smalti_html *smalti_html_new(struct smalti_error *error);
void smalti_html_free(struct smalti_html *html); /* NULL is fine */
int smalti_html_text(const struct smalti_html *html, struct smalti_string *string,
		     struct smalti_error *error);

/* The names of enum smalti_cleaning, ended by NULL. */
extern const char *const smalti_cleanings[];

/* Longest caption for full cleaning in bytes: the time of its patterns grows with the square. */
enum { SMALTI_CLEANING_BYTES = 8 << 10 };

/* Prepares a caption for the tokenizer (docs/reference.md 2.3); `cleaner` may be NULL unless cleaning is
 * FULL. Returns the result for free(), and its length (NUL may be inside; there is one more at the end). RAW
 * keeps the bytes; others make valid UTF-8. NULL with SMALTI_EINVAL for a caption that is too long,
 * SMALTI_EUNSUPPORTED where a pattern takes too many steps, SMALTI_ENOMEM. */
char *smalti_caption_prepare(const struct smalti_cleaner *cleaner, enum smalti_cleaning cleaning,
			     const char *text, size_t length, size_t *prepared, struct smalti_error *error);
