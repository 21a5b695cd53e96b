/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* Notes in the items of `value` what cJSON loses of the text that it was parsed from, for the functions of
 * json.h. */
int smalti_json_keep(cJSON *value, const char *text, size_t length, struct smalti_error *error);
