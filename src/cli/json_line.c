/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/json_line.h"

#include "base/json.h"
#include "cli/command.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

void smalti_json_line(cJSON *object, bool *broken)
{
	SCOPED(free) char *text = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	if (!*broken) {
		if (text)
			puts(text);
		*broken = !text || smalti_finish_stdout() != SMALTI_EXIT_OK;
	}
}

void smalti_json_add_seconds(cJSON *object, double seconds)
{
	cJSON_AddNumberToObject(object, "seconds", round(seconds * 1000) / 1000);
}
