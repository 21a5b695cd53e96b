/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TEXT_HTML_TEXT_H
#define SMALTI_TEXT_HTML_TEXT_H

#include "text/utf8.h"

/* The text of HTML as BeautifulSoup's get_text() with html.parser has it: tags, comments and
 * declarations go, references are decoded, the contents of script, style, template, rt and rp go too.
 * What is no well-formed markup stays as text. */
struct smalti_html;

struct smalti_html *smalti_html_new(struct smalti_error *error);
void smalti_html_free(struct smalti_html *html); /* NULL is fine */
int smalti_html_text(const struct smalti_html *html, struct smalti_string *string,
		     struct smalti_error *error);

#endif
