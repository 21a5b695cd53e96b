/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_JSON_LINE_H
#define SMALTI_CLI_JSON_LINE_H

#include <cjson/cJSON.h>
#include <stdbool.h>

/* What --json prints: an object per line. */

/* Frees the object. A line that cannot be written makes *broken true: nobody reads on, and the work may end;
 * after that nothing is written. */
void smalti_json_line(cJSON *object, bool *broken);

/* Adds "seconds", to the millisecond. */
void smalti_json_add_seconds(cJSON *object, double seconds);

#endif
