/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "features/reader.h"
#include "shard/layout.h"

/* Compares the rows with the shard's name; its own checksums do the rest. */
static int check_shard(const struct smalti_shard *shard, const struct smalti_shard_entry *entry,
		       const char *path, struct smalti_error *error)
{
	if (smalti_shard_info(shard)->first == entry->id.first &&
	    smalti_shard_info(shard)->end == entry->id.end)
		return 0;
	return smalti_fail(error, SMALTI_ECORRUPT,
			   "%s: its rows are %" PRId64 " to %" PRId64
			   ": not those that its name says; run smalti verify",
			   path, smalti_shard_info(shard)->first, smalti_shard_info(shard)->end - 1);
}

static struct smalti_shard *open_shard(const struct smalti_features_set *set, int64_t number,
				       struct smalti_error *error)
{
	const struct smalti_shard_entry *entry = &set->shards.entries[number];
	SCOPED(free) char *path = smalti_shard_path(set->directory, &entry->id, error);
	struct smalti_shard *shard = path ? smalti_shard_open(path, error) : NULL;
	int status = shard ? check_shard(shard, entry, path, error) : -1;
	const char *other = status == 0 && set->model
				? smalti_shard_schema_difference(smalti_shard_info(shard)->schema,
								 smalti_shard_info(set->model)->schema)
				: NULL;
	if (other)
		status = smalti_fail(error, SMALTI_ECORRUPT,
				     "%s: its %s is not that of the directory's others", path, other);
	if (status == 0)
		return shard;
	smalti_shard_close(shard);
	return NULL;
}

/* Opens the first good shard: a damaged one does not hide the others. */
static int open_model(struct smalti_features_set *set, struct smalti_error *error)
{
	struct smalti_error first = SMALTI_NO_ERROR;
	for (int64_t i = 0; i < set->shards.count && !set->model; i++)
		set->model = open_shard(set, i, &first);
	if (set->model || set->shards.count == 0)
		return 0;
	return smalti_pass(error, &first);
}

static int check_directory(const char *directory, struct smalti_error *error)
{
	const int found = smalti_find_in(directory, "extract.json", error);
	if (found)
		return found < 0 ? -1 : 0;
	if (access(directory, F_OK) < 0)
		return smalti_fail_errno(error, "%s: cannot be opened", directory);
	return smalti_fail(error, SMALTI_EFORMAT,
			   "%s: no directory of features, for it has no extract.json; smalti extract makes "
			   "them",
			   directory);
}

int smalti_features_set_open(struct smalti_features_set *set, const char *directory,
			     struct smalti_error *error)
{
	*set = (struct smalti_features_set){.directory = smalti_format(error, "%s", directory)};
	if (!set->directory || check_directory(directory, error) < 0 ||
	    smalti_shards_read(&set->shards, directory, error) < 0 ||
	    smalti_shards_check(&set->shards, directory, error) < 0)
		return -1;
	set->rows = smalti_calloc(set->shards.count + 1, sizeof(*set->rows), error);
	if (!set->rows)
		return -1;
	for (int64_t i = 0; i < set->shards.count; i++) {
		set->rows[i] = set->shards.entries[i].id.end - set->shards.entries[i].id.first;
		set->row_count += set->rows[i];
	}
	return open_model(set, error);
}

void smalti_features_set_close(struct smalti_features_set *set)
{
	smalti_shard_close(set->model);
	smalti_shards_free(&set->shards);
	free(set->rows);
	free(set->directory);
	*set = (struct smalti_features_set){.directory = NULL};
}

int64_t smalti_features_set_find(const struct smalti_features_set *set, int64_t index)
{
	int64_t from;
	return smalti_shards_within(&set->shards, index, index + 1, &from) > from ? from : -1;
}

/* Returns the one with that number, else a free one, else the one used longest ago. */
static struct smalti_features_opened *choose(struct smalti_features_shards *shards,
					     const struct smalti_features_set *set, int64_t number)
{
	struct smalti_features_opened *oldest = &shards->opened[0];
	for (int i = 0; i < SMALTI_FEATURES_OPEN_MAX; i++) {
		struct smalti_features_opened *opened = &shards->opened[i];
		if (opened->set == set && opened->number == number + 1)
			return opened;
		if (opened->used < oldest->used)
			oldest = opened;
	}
	return oldest;
}

struct smalti_shard *smalti_features_shards_get(struct smalti_features_shards *shards,
						const struct smalti_features_set *set, int64_t number,
						struct smalti_error *error)
{
	struct smalti_features_opened *opened = choose(shards, set, number);
	if (opened->set != set || opened->number != number + 1) {
		smalti_shard_close(opened->shard);
		*opened = (struct smalti_features_opened){.set = set, .number = number + 1};
		opened->shard = open_shard(set, number, &opened->error);
	}
	opened->used = ++shards->clock;
	if (!opened->shard)
		smalti_pass(error, &opened->error);
	return opened->shard;
}

void smalti_features_shards_close(struct smalti_features_shards *shards)
{
	for (int i = 0; i < SMALTI_FEATURES_OPEN_MAX; i++)
		smalti_shard_close(shards->opened[i].shard);
	*shards = (struct smalti_features_shards){.clock = 0};
}
