/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "harness.h"

#include <cjson/cJSON.h>

/* Returns the object of a text. */
cJSON *config_object(const char *text);

/* Rows of files that a parser must refuse: SMALTI_EFORMAT or _EUNSUPPORTED, and words to find. */
struct bad_config {
	const char *text;
	enum smalti_code code;
	const char *words[2];
};

typedef int config_parse_function(const cJSON *file, struct smalti_error *error);

void check_bad_configs(config_parse_function *parse, const struct bad_config *cases, size_t count);
