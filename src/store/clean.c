/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "store/directory.h"

/* The shards and claims that a file may belong to. */
struct known {
	const char *directory;
	const struct smalti_shards *shards;
	const struct smalti_claim *claims;
	int64_t count;
};

static bool begins(const char *name, const char *with)
{
	return strncmp(name, with, strlen(with)) == 0;
}

static bool is_part(const char *name)
{
	return name[0] == '.' && smalti_stem(name, ".part") > 0;
}

/* Tells whether a file's writer is dead: such files are written under the lock, which we hold. */
static bool is_abandoned(const char *name)
{
	static const char *const names[] = {".extract.json.", ".failed.jsonl.", ".features.h5.",
					    ".manifest.json."};
	for (size_t i = 0; i < COUNT_OF(names); i++)
		if (begins(name, names[i]))
			return is_part(name);
	return false;
}

/* Tells whether it is the unfinished shard of a claim that holds. */
static bool is_worked_on(const struct known *known, const char *name)
{
	for (int64_t i = 0; i < known->count; i++) {
		SCOPED(free)
		char *part = smalti_part_path(known->directory, known->claims[i].first, known->claims[i].end,
					      known->claims[i].token, NULL);
		const bool same = part && strcmp(strrchr(part, '/') + 1, name) == 0;
		if (same)
			return true;
	}
	return false;
}

static bool was_made_anew(const struct smalti_shards *shards, const struct smalti_shard_id *id)
{
	int64_t from;
	if (smalti_shards_within(shards, id->first, id->end, &from) != from + 1)
		return false;
	const struct smalti_shard_id *held = &shards->entries[from].id;
	return held->first == id->first && held->end == id->end && held->remake > id->remake;
}

static bool is_stray(const struct known *known, const char *name)
{
	struct smalti_shard_id id;
	if (smalti_shard_name_parse(name, &id))
		return was_made_anew(known->shards, &id);
	if (begins(name, ".shard-") && is_part(name))
		return !is_worked_on(known, name);
	return is_abandoned(name);
}

/* Tells whether a claim was being written to this file of claims/. */
static bool is_torn_claim(const struct known *known, const char *name)
{
	(void)known;
	return is_part(name);
}

static int sweep_one(const struct smalti_strays *strays, DIR *entries, const char *path, const char *name,
		     struct smalti_error *error)
{
	if (strays) {
		strays->report(strays->user, name);
		return 0;
	}
	if (unlinkat(dirfd(entries), name, 0) == 0 || errno == ENOENT)
		return 0;
	return smalti_fail_errno(error, "%s/%s: nobody's, but it cannot be removed", path, name);
}

static int sweep(const struct known *known, const char *path,
		 bool (*unwanted)(const struct known *known, const char *name),
		 const struct smalti_strays *strays, struct smalti_error *error)
{
	SCOPED(closedir) DIR *entries = opendir(path);
	if (!entries)
		return errno == ENOENT ? 0 : smalti_fail_errno(error, "%s: cannot be read", path);
	int status = 0;
	for (const struct dirent *entry; status == 0 && (entry = readdir(entries));)
		if (unwanted(known, entry->d_name))
			status = sweep_one(strays, entries, path, entry->d_name, error);
	return status;
}

int smalti_directory_clean(const char *directory, const struct smalti_shards *shards,
			   struct smalti_claims *claims, int64_t now, const struct smalti_strays *strays,
			   struct smalti_error *error)
{
	SCOPED(free) struct smalti_claim *list = NULL;
	struct known known = {.directory = directory, .shards = shards};
	SCOPED(free) char *inside = smalti_format(error, "%s/claims", directory);
	int status = inside ? smalti_claims_list(claims, &now, &list, &known.count, error) : -1;
	known.claims = list;
	return status || sweep(&known, directory, is_stray, strays, error) ||
		       sweep(&known, inside, is_torn_claim, strays, error)
		   ? -1
		   : 0;
}
