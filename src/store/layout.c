/* SPDX-License-Identifier: Apache-2.0 */
#include "store/layout.h"
#include "base/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void smalti_shard_name(const struct smalti_shard_id *id, char name[SMALTI_SHARD_NAME])
{
	char again[16] = "";
	if (id->remake > 0)
		snprintf(again, sizeof(again), "-r%d", id->remake);
	snprintf(name, SMALTI_SHARD_NAME, "shard-%012" PRId64 "-%012" PRId64 "%s.h5", id->first, id->end,
		 again);
}

/* Only what smalti_shard_name() would write is a name of a shard: the numbers are read loosely, then
 * written again. */
bool smalti_shard_name_parse(const char *name, struct smalti_shard_id *id)
{
	struct smalti_shard_id found = {0};
	if (sscanf(name, "shard-%12" SCNd64 "-%12" SCNd64 "-r%9d", &found.first, &found.end, &found.remake) <
	    2)
		return false;
	char again[SMALTI_SHARD_NAME];
	smalti_shard_name(&found, again);
	if (strcmp(again, name) != 0 || found.first < 0 || found.end <= found.first)
		return false;
	*id = found;
	return true;
}

char *smalti_part_path(const char *folder, int64_t first, int64_t end, const char *token,
		       struct smalti_error *error)
{
	char name[SMALTI_SHARD_NAME];
	smalti_shard_name(&(struct smalti_shard_id){first, end, 0}, name);
	return smalti_format(error, "%s/.%s.%s.part", folder, name, token);
}
