/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/compare.h"

#include "base/base.h"
#include "base/file.h"
#include "base/json.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LARGEST = 64 << 20 };

struct smalti_baseline {
	cJSON *seconds;    /* of each name */
	double logarithms; /* the sum of the ratios' */
	int ratios;
};

static int check_head(const cJSON *line, const char *path, const char *command, struct smalti_error *error)
{
	const cJSON *found = cJSON_GetObjectItemCaseSensitive(line, "command");
	if (cJSON_IsString(found) && strcmp(found->valuestring, command) == 0)
		return 0;
	return smalti_fail(error, SMALTI_EFORMAT, "%s, line 1: expected \"command\" \"%s\", found %s", path,
			   command, found && cJSON_IsString(found) ? found->valuestring : "none");
}

static int add_entry(struct smalti_baseline *baseline, const cJSON *line, struct smalti_error *error)
{
	const char *name = NULL;
	double seconds = 0;
	if (smalti_json_string(line, "name", SMALTI_JSON_REQUIRED, &name, error) < 0 ||
	    smalti_json_double(line, "seconds", SMALTI_JSON_REQUIRED, 1e-12, 1e12, &seconds, error) < 0)
		return -1;
	if (!cJSON_AddNumberToObject(baseline->seconds, name, seconds))
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a report");
	return 0;
}

static int read_line(struct smalti_baseline *baseline, const char *path, const char *command, int number,
		     const char *text, size_t length, struct smalti_error *error)
{
	struct smalti_error inner = SMALTI_NO_ERROR;
	cJSON *line = smalti_json_parse(text, length, &inner);
	int status = line ? 0 : -1;
	if (line && number == 1)
		status = check_head(line, path, command, error);
	else if (line)
		status = add_entry(baseline, line, &inner);
	cJSON_Delete(line);
	if (inner.code != SMALTI_OK)
		smalti_fail(error, inner.code, "%s, line %d: %s", path, number, inner.message);
	return status;
}

static int read_lines(struct smalti_baseline *baseline, const char *path, const char *command,
		      const char *text, struct smalti_error *error)
{
	int number = 0;
	while (*text) {
		const size_t length = strcspn(text, "\n");
		if (read_line(baseline, path, command, ++number, text, length, error) < 0)
			return -1;
		text += length + (text[length] == '\n');
	}
	return number ? 0 : smalti_fail(error, SMALTI_EFORMAT, "%s: an empty file is no report", path);
}

struct smalti_baseline *smalti_baseline_read(const char *path, const char *command,
					     struct smalti_error *error)
{
	size_t length;
	char *text = smalti_file_read(path, LARGEST, &length, error);
	struct smalti_baseline *baseline = text ? smalti_calloc(1, sizeof(*baseline), error) : NULL;
	if (baseline && !(baseline->seconds = cJSON_CreateObject()))
		smalti_fail(error, SMALTI_ENOMEM, "no memory for a report");
	if (baseline && (!baseline->seconds || read_lines(baseline, path, command, text, error) < 0)) {
		smalti_baseline_free(baseline);
		baseline = NULL;
	}
	free(text);
	return baseline;
}

void smalti_baseline_free(struct smalti_baseline *baseline)
{
	if (!baseline)
		return;
	cJSON_Delete(baseline->seconds);
	free(baseline);
}

double smalti_baseline_ratio(struct smalti_baseline *baseline, const char *name, double seconds)
{
	const cJSON *then = baseline ? cJSON_GetObjectItemCaseSensitive(baseline->seconds, name) : NULL;
	if (!then)
		return NAN;
	const double ratio = seconds / then->valuedouble;
	baseline->logarithms += log(ratio);
	baseline->ratios++;
	return ratio;
}

double smalti_baseline_mean(const struct smalti_baseline *baseline, int *count)
{
	*count = baseline ? baseline->ratios : 0;
	return *count ? exp(baseline->logarithms / *count) : NAN;
}
