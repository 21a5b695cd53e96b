/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* Write page.html.in up to its data, and behind them; the page stands alone. What follows writes the data. */

void smalti_page_begin(FILE *page);
void smalti_page_end(FILE *page);

/* Writes a JSON string of any bytes: what is no UTF-8 becomes U+FFFD, and nothing in it ends a script. */
void smalti_page_text(FILE *page, const char *text);
/* Writes "KEY":"TEXT", with its comma. */
void smalti_page_member(FILE *page, const char *key, const char *text);
/* Writes this with the object's text of that key; "" if it has none. */
void smalti_page_value(FILE *page, const char *key, const cJSON *object);
/* Writes "KEY":["TEXT",…], with its comma. */
void smalti_page_list(FILE *page, const char *key, const cJSON *texts);
/* Writes "devices":[…], with those numbers of each that are known (rt/device_use.h). */
void smalti_page_devices(FILE *page, const cJSON *devices);
/* Writes "predicted":[MACHINE,SECONDS,MEASURED SECONDS], with its comma; null if that is not what is there.
 */
void smalti_page_prediction(FILE *page, const cJSON *prediction);
/* Returns a JSON string's text, else "". */
const char *smalti_text_of(const cJSON *item);
