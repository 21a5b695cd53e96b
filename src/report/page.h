/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* Pages that stand alone: page.html.in up to its data and behind, and what the data is written with. */

void smalti_page_begin(FILE *page);
void smalti_page_end(FILE *page);

/* A JSON string of any bytes: what is no UTF-8 becomes U+FFFD, and nothing in it ends a script. */
void smalti_page_text(FILE *page, const char *text);
/* "KEY":"TEXT", */
void smalti_page_member(FILE *page, const char *key, const char *text);
/* The same of the object's text of that key; "" if it has none. */
void smalti_page_value(FILE *page, const char *key, const cJSON *object);
/* "KEY":["TEXT",…], */
void smalti_page_list(FILE *page, const char *key, const cJSON *texts);
/* "devices":[…], with what is known of the numbers of each (rt/device_use.h). */
void smalti_page_devices(FILE *page, const cJSON *devices);
/* Of a JSON string; "" of anything else. */
const char *smalti_text_of(const cJSON *item);
