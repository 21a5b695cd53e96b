/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_REPORT_HTML_H
#define SMALTI_CLI_REPORT_HTML_H

#include <stdio.h>

/* Parts of a page that stands alone: no scripts, nothing from elsewhere. */

/* Text as it is read: markup in it does nothing, what is no UTF-8 and control characters become U+FFFD. */
void smalti_page_text(FILE *page, const char *text);

void smalti_page_begin(FILE *page, const char *title);
void smalti_page_end(FILE *page);

#endif
