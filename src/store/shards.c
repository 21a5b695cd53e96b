/* SPDX-License-Identifier: Apache-2.0 */
#include "store/shards.h"
#include "base/file.h"
#include "shard/shard.h"

#include <limits.h>

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

char *smalti_shard_path(const char *directory, const struct smalti_shard_id *id, struct smalti_error *error)
{
	char name[SMALTI_SHARD_NAME];
	smalti_shard_name(id, name);
	return smalti_format(error, "%s/%s", directory, name);
}

static int add(struct smalti_shards *shards, const struct smalti_shard_id *id, struct smalti_error *error)
{
	if (smalti_grow(&shards->entries, shards->count, sizeof(*shards->entries), error) < 0)
		return -1;
	shards->entries[shards->count++] = (struct smalti_shard_entry){.id = *id};
	return 0;
}

static int read_names(struct smalti_shards *shards, const char *directory, struct smalti_error *error)
{
	SCOPED(closedir) DIR *files = opendir(directory);
	if (!files)
		return smalti_fail_errno(error, "%s: cannot be read", directory);
	int status = 0;
	errno = 0;
	for (const struct dirent *file; status == 0 && (file = readdir(files)); errno = 0) {
		struct smalti_shard_id id;
		if (smalti_shard_name_parse(file->d_name, &id))
			status = add(shards, &id, error);
	}
	return status == 0 && errno ? smalti_fail_errno(error, "%s: cannot be read", directory) : status;
}

static bool same_items(const struct smalti_shard_id *a, const struct smalti_shard_id *b)
{
	return a->first == b->first && a->end == b->end;
}

/* Orders the one made last first among equal items. */
static int by_items(const void *a, const void *b)
{
	const struct smalti_shard_id *x = &((const struct smalti_shard_entry *)a)->id;
	const struct smalti_shard_id *y = &((const struct smalti_shard_entry *)b)->id;
	if (x->first != y->first)
		return x->first < y->first ? -1 : 1;
	if (x->end != y->end)
		return x->end < y->end ? -1 : 1;
	return x->remake > y->remake ? -1 : x->remake < y->remake;
}

/* Sorts, drops what was made anew, marks overlaps. */
static void settle(struct smalti_shards *shards)
{
	const int64_t count = shards->count;
	int64_t end = 0;
	if (count)
		qsort(shards->entries, (size_t)count, sizeof(*shards->entries), by_items);
	shards->count = 0;
	for (int64_t i = 0; i < count; i++) {
		struct smalti_shard_entry *entry = &shards->entries[i];
		if (shards->count && same_items(&shards->entries[shards->count - 1].id, &entry->id))
			continue;
		entry->overlaps = entry->id.first < end;
		end = entry->overlaps ? end : entry->id.end;
		shards->entries[shards->count++] = *entry;
	}
}

int smalti_shards_read(struct smalti_shards *shards, const char *directory, struct smalti_error *error)
{
	struct smalti_shards now = {.read = true};
	if (read_names(&now, directory, error)) {
		smalti_shards_free(&now);
		return -1;
	}
	settle(&now);
	for (int64_t i = 0; i < now.count; i++) {
		struct smalti_shard_entry *entry = &now.entries[i];
		const struct smalti_shard_entry *known = smalti_shards_find(shards, &entry->id);
		const bool overlaps = entry->overlaps;
		entry->tried = shards->read;
		if (known)
			*entry = *known;
		entry->overlaps = overlaps;
	}
	smalti_shards_free(shards);
	*shards = now;
	return 0;
}

int smalti_shards_check(const struct smalti_shards *shards, const char *directory, struct smalti_error *error)
{
	for (int64_t i = 0; i < shards->count; i++) {
		char name[SMALTI_SHARD_NAME];
		smalti_shard_name(&shards->entries[i].id, name);
		if (shards->entries[i].overlaps)
			return smalti_fail(error, SMALTI_ECORRUPT,
					   "%s/%s: has items that another shard has, too; run smalti verify "
					   "--repair",
					   directory, name);
	}
	return 0;
}

static int describe(struct smalti_shard_entry *entry, const char *path, struct smalti_error *error)
{
	SCOPED(smalti_shard_close) struct smalti_shard *shard = smalti_shard_open_unchecked(path, error);
	if (!shard)
		return -1;
	int64_t last = -1;
	int status = 0;
	entry->failures = 0;
	entry->reasons = smalti_shard_info(shard)->failures;
	for (int64_t i = 0; i < entry->reasons && status == 0; i++) {
		struct smalti_shard_failure failure;
		status = smalti_shard_failure(shard, i, &failure, error);
		entry->failures += status == 0 && failure.index != last;
		last = failure.index;
	}
	entry->bytes = smalti_shard_info(shard)->bytes;
	entry->seal = smalti_shard_info(shard)->seal;
	entry->described = status == 0;
	return status;
}

int smalti_shards_describe(struct smalti_shards *shards, const char *directory, struct smalti_error *error)
{
	struct smalti_error first = SMALTI_NO_ERROR;
	for (int64_t i = 0; i < shards->count; i++) {
		struct smalti_shard_entry *entry = &shards->entries[i];
		struct smalti_error *cause = first.code ? NULL : &first;
		SCOPED(free)
		char *path = entry->described ? NULL : smalti_shard_path(directory, &entry->id, cause);
		if (path)
			(void)describe(entry, path, cause);
	}
	const bool damaged = first.code == SMALTI_ECORRUPT || first.code == SMALTI_EFORMAT;
	const char *remedy = damaged ? "; run smalti verify --repair" : "";
	return first.code ? smalti_fail(error, first.code, "%s%s", first.message, remedy) : 0;
}

void smalti_shards_free(struct smalti_shards *shards)
{
	free(shards->entries);
	*shards = (struct smalti_shards){.count = 0};
}

struct smalti_store_totals smalti_shards_totals(const struct smalti_shards *shards, int64_t first,
						int64_t end)
{
	struct smalti_store_totals totals = {0};
	int64_t i;
	const int64_t to = smalti_shards_within(shards, first, end, &i);
	totals.shards = to - i;
	for (; i < to; i++) {
		const struct smalti_shard_entry *entry = &shards->entries[i];
		totals.items += smalti_min(entry->id.end, end) - smalti_max(entry->id.first, first);
		totals.failures += entry->failures;
		totals.bytes += entry->bytes;
	}
	return totals;
}

bool smalti_shards_cover(const struct smalti_shards *shards, int64_t items)
{
	int64_t at = 0;
	for (int64_t i = 0; i < shards->count && shards->entries[i].id.first == at; i++)
		at = shards->entries[i].id.end;
	return at >= items;
}

int64_t smalti_shards_within(const struct smalti_shards *shards, int64_t first, int64_t end, int64_t *from)
{
	int64_t low = 0, high = shards->count;
	while (low < high) { /* the first that ends behind `first` */
		const int64_t middle = low + (high - low) / 2;
		if (shards->entries[middle].id.end <= first)
			low = middle + 1;
		else
			high = middle;
	}
	*from = low;
	while (low < shards->count && shards->entries[low].id.first < end)
		low++;
	return low;
}

struct smalti_shard_entry *smalti_shards_find(const struct smalti_shards *shards,
					      const struct smalti_shard_id *id)
{
	const struct smalti_shard_entry wanted = {.id = *id};
	return shards->count
		   ? bsearch(&wanted, shards->entries, (size_t)shards->count, sizeof(wanted), by_items)
		   : NULL;
}
