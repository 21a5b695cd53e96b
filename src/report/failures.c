/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/json.h"
#include "report/report.h"

#include <ctype.h>

static char *last_of(char *text, const char *word)
{
	char *found = NULL;
	for (char *at = text; *word && (at = strstr(at, word)); at++)
		found = at;
	return found;
}

void smalti_failure_generalize(char *reason, const char *key)
{
	const char *rest = last_of(reason, key);
	if (rest) {
		rest += strlen(key);
		rest += strspn(rest, ": ");
		if (*rest)
			memmove(reason, rest, strlen(rest) + 1);
	}
	char *to = reason;
	for (const char *from = reason; *from; from++) {
		const bool digit = isdigit((unsigned char)*from);
		if (!digit || to == reason || to[-1] != '#')
			*to++ = digit ? '#' : *from;
	}
	*to = '\0';
}

static struct smalti_failure_group *find_group(struct smalti_failures *failures, const char *stage,
					       const char *reason)
{
	for (int i = 0; i < failures->count; i++)
		if (strcmp(failures->groups[i].reason, reason) == 0 &&
		    strcmp(failures->groups[i].stage, stage) == 0)
			return &failures->groups[i];
	if (failures->count == SMALTI_FAILURE_GROUPS)
		return NULL;
	struct smalti_failure_group *group = &failures->groups[failures->count];
	group->stage = strdup(stage);
	group->reason = strdup(reason);
	if (group->stage && group->reason) {
		failures->count++;
		return group;
	}
	free(group->stage);
	free(group->reason);
	return NULL;
}

static void add(struct smalti_failures *failures, const char *stage, char *reason, const char *key)
{
	smalti_failure_generalize(reason, key);
	struct smalti_failure_group *group = find_group(failures, stage, reason);
	if (group && group->count < SMALTI_FAILURE_EXAMPLES)
		group->examples[group->count] = strdup(key);
	if (group)
		group->count++;
	else
		failures->others++;
}

/* Lines of one item follow each other. */
static int read_line(void *user, cJSON **line, struct smalti_error *error)
{
	struct smalti_failures *failures = user;
	const char *stage = NULL, *reason = NULL, *key = NULL;
	int64_t index = 0;
	if (smalti_json_int(*line, "index", SMALTI_JSON_REQUIRED, 0, INT64_C(1) << 53, &index, error) ||
	    smalti_json_string(*line, "key", SMALTI_JSON_REQUIRED, &key, error) ||
	    smalti_json_string(*line, "stage", SMALTI_JSON_REQUIRED, &stage, error) ||
	    smalti_json_string(*line, "reason", SMALTI_JSON_REQUIRED, &reason, error))
		return -1;
	SCOPED(free) char *copy = smalti_format(error, "%s", reason);
	if (!copy)
		return -1;
	failures->items += failures->lines == 0 || index != failures->last;
	failures->lines++;
	failures->last = index;
	add(failures, stage, copy, key);
	return 0;
}

static int by_count(const void *a, const void *b)
{
	const struct smalti_failure_group *first = a, *second = b;
	if (first->count != second->count)
		return first->count < second->count ? 1 : -1;
	const int order = strcmp(first->stage, second->stage);
	return order ? order : strcmp(first->reason, second->reason);
}

int smalti_failures_read(const char *directory, struct smalti_failures *failures, struct smalti_error *error)
{
	*failures = (struct smalti_failures){.count = 0};
	SCOPED(free) char *path = smalti_format(error, "%s/failed.jsonl", directory);
	if (!path)
		return -1;
	int64_t size = 0;
	const int found = smalti_find_file(path, error);
	SCOPED(close) const int file = found > 0 ? smalti_open_regular(path, &size, error) : -1;
	int status = found && file < 0 ? -1 : 0;
	if (file >= 0)
		status = smalti_json_lines(file, read_line, failures, &failures->unreadable, error);
	qsort(failures->groups, (size_t)failures->count, sizeof(*failures->groups), by_count);
	if (status)
		smalti_failures_free(failures);
	return status;
}

void smalti_failures_free(struct smalti_failures *failures)
{
	for (int i = 0; i < failures->count; i++) {
		free(failures->groups[i].stage);
		free(failures->groups[i].reason);
		for (int j = 0; j < SMALTI_FAILURE_EXAMPLES; j++)
			free(failures->groups[i].examples[j]);
	}
	failures->count = 0;
}
