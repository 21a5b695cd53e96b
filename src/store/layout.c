/* SPDX-License-Identifier: Apache-2.0 */
#include "store/layout.h"
#include "base/alloc.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DIGITS = 12 };

void smalti_range_name(int64_t first, int64_t end, char name[SMALTI_RANGE_NAME])
{
	snprintf(name, SMALTI_RANGE_NAME, "%0*" PRId64 "-%0*" PRId64, DIGITS, first, DIGITS, end);
}

static bool read_digits(const char *text, int64_t *value)
{
	*value = 0;
	for (int i = 0; i < DIGITS; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*value = 10 * *value + (text[i] - '0');
	}
	return true;
}

const char *smalti_range_parse(const char *text, int64_t *first, int64_t *end)
{
	if (!read_digits(text, first) || text[DIGITS] != '-' || !read_digits(text + DIGITS + 1, end) ||
	    *end <= *first)
		return NULL;
	return text + 2 * DIGITS + 1;
}

void smalti_shard_name(const struct smalti_shard_id *id, char name[SMALTI_SHARD_NAME])
{
	char range[SMALTI_RANGE_NAME], again[16] = "";
	smalti_range_name(id->first, id->end, range);
	if (id->remake > 0)
		snprintf(again, sizeof(again), "-r%d", id->remake);
	snprintf(name, SMALTI_SHARD_NAME, "shard-%s%s.h5", range, again);
}

bool smalti_shard_name_parse(const char *name, struct smalti_shard_id *id)
{
	static const char begin[] = "shard-";
	struct smalti_shard_id found = {0};
	if (strncmp(name, begin, strlen(begin)) != 0)
		return false;
	const char *rest = smalti_range_parse(name + strlen(begin), &found.first, &found.end);
	if (!rest)
		return false;
	if (rest[0] == '-' && rest[1] == 'r') {
		const long remake = strtol(rest + 2, NULL, 10);
		found.remake = remake > 0 && remake < INT_MAX ? (int)remake : 0;
	}
	char again[SMALTI_SHARD_NAME]; /* the number may have been written otherwise: then it is no shard */
	smalti_shard_name(&found, again);
	if (strcmp(again, name) != 0)
		return false;
	*id = found;
	return true;
}

char *smalti_part_path(const char *directory, int64_t first, int64_t end, const char *token,
		       struct smalti_error *error)
{
	char name[SMALTI_SHARD_NAME];
	smalti_shard_name(&(struct smalti_shard_id){first, end, 0}, name);
	return smalti_format(error, "%s/.%s.%s.part", directory, name, token);
}
