/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_REPORT_HTML_H
#define SMALTI_CLI_REPORT_HTML_H

#include <stdint.h>
#include <stdio.h>

/* Parts of a page that stands alone: no scripts, nothing from elsewhere. */

/* Text as it is read: markup in it does nothing, what is no UTF-8 and control characters become U+FFFD. */
void smalti_page_text(FILE *page, const char *text);

void smalti_page_begin(FILE *page, const char *title);
void smalti_page_end(FILE *page);

/* "1234" -> "1,234"; 1.5e7 -> "15.0M"; 3 GiB; 3725 s -> "1:02:05". @{ */
enum { SMALTI_PAGE_NUMBER = 32 };
const char *smalti_page_count(int64_t value, char text[SMALTI_PAGE_NUMBER]);
const char *smalti_page_short(double value, char text[SMALTI_PAGE_NUMBER]);
const char *smalti_page_bytes(double value, char text[SMALTI_PAGE_NUMBER]);
const char *smalti_page_seconds(double value, char text[SMALTI_PAGE_NUMBER]);
/* @} */

#endif
