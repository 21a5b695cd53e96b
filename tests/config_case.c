/* SPDX-License-Identifier: Apache-2.0 */
#include "config_case.h"

#include "base/json.h"

#include <string.h>

cJSON *config_object(const char *text)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *value = smalti_json_parse(text, strlen(text), &error);
	SUCCEEDS(value ? 0 : -1, &error, text);
	return value;
}

void check_bad_configs(config_parse_function *parse, const struct bad_config *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		cJSON *file = config_object(cases[i].text);
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(parse(file, &error), &error, cases[i].code, cases[i].text, cases[i].words[0],
		      cases[i].words[1]);
		cJSON_Delete(file);
	}
}
