/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/clock.h"
#include "store/checker.h"
#include "store/digest.h"
#include "store/failed.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What there is enough of to make it again. */
static int repair_extract(struct smalti_checker *checker, struct smalti_error *error)
{
	if (!checker->extract_broken)
		return 0;
	const cJSON *identity = cJSON_GetObjectItemCaseSensitive(checker->manifest, "identity");
	if (identity)
		return smalti_directory_describe(checker->directory, identity, error);
	checker->result->left++;
	return 0;
}

/* The line first: a shard without one is an orphan, a line without a shard would be damage. */
static int drop(struct smalti_checker *checker, struct smalti_journal *journal,
		struct smalti_journal_entry entry, struct smalti_error *error)
{
	if (!smalti_journal_names(journal, &entry))
		return 0;
	entry.drop = true;
	entry.time = floor(smalti_wall_clock());
	if (smalti_journal_append(journal, checker->directory, &entry, "found broken by smalti verify",
				  error))
		return -1;
	checker->result->dropped += entry.id.end - entry.id.first;
	char *path = smalti_journal_path(checker->directory, &entry.id, error);
	char *aside = path ? smalti_format(error, "%s.broken", path) : NULL;
	int status = aside ? 0 : -1;
	if (aside && rename(path, aside) && errno != ENOENT)
		status = smalti_fail_errno(error, "%s: cannot be renamed to %s", path, aside);
	free(aside);
	free(path);
	return status;
}

static bool is_whole(struct smalti_shard *shard, const struct smalti_shard_id *id, struct smalti_error *cause)
{
	bool whole = smalti_shard_first(shard) == id->first && smalti_shard_end(shard) == id->end;
	for (int64_t i = id->first; i < id->end && whole; i++) {
		struct smalti_features_row row;
		whole = smalti_shard_row(shard, i, &row, cause) == 0;
	}
	return whole;
}

/* What the journal would say of a file: 1; 0 if it is no whole shard. */
static int describe(const char *path, struct smalti_journal_entry *entry, struct smalti_error *error)
{
	struct smalti_failed failed = {0};
	struct smalti_error cause = SMALTI_NO_ERROR;
	struct smalti_shard *shard = smalti_shard_open(path, &cause);
	const bool whole = shard && is_whole(shard, &entry->id, &cause) &&
			   smalti_failed_of(shard, &failed, &cause) == 0 &&
			   smalti_file_digest(path, &entry->digest, &entry->bytes, &cause) == 0;
	entry->failures = failed.failures;
	entry->reasons = failed.reasons;
	entry->replaces = -1;
	entry->time = floor(smalti_wall_clock());
	free(failed.lines);
	smalti_shard_close(shard);
	if (cause.code && !smalti_is_of_input(cause.code))
		return smalti_fail(error, cause.code, "%s", cause.message);
	return whole;
}

/* A shard whose line was lost, unless its items are there already. */
static int adopt(struct smalti_checker *checker, struct smalti_journal *journal,
		 const struct smalti_shard_id *id, struct smalti_error *error)
{
	int64_t from;
	struct smalti_journal_entry entry = {.id = *id};
	if (smalti_journal_within(journal, id->first, id->end, &from) > from)
		return 0;
	char *path = smalti_journal_path(checker->directory, id, error);
	int status = path ? describe(path, &entry, error) : -1;
	if (status > 0) {
		status = smalti_journal_append(journal, checker->directory, &entry, NULL, error);
		checker->result->adopted += status == 0 ? id->end - id->first : 0;
	}
	free(path);
	return status;
}

/* Latest first of those of the same items. */
static int by_remake(const void *a, const void *b)
{
	const struct smalti_shard_id *x = a, *y = b;
	return x->remake > y->remake ? -1 : x->remake < y->remake;
}

struct found {
	struct smalti_shard_id *ids;
	int64_t count, capacity;
};

static int find_shards(const char *directory, struct found *found, struct smalti_error *error)
{
	DIR *entries = opendir(directory);
	if (!entries)
		return smalti_fail_errno(error, "%s: cannot be read", directory);
	int status = 0;
	for (const struct dirent *entry; status == 0 && (entry = readdir(entries));) {
		struct smalti_shard_id id;
		if (!smalti_shard_name_parse(entry->d_name, &id))
			continue;
		if (found->count == found->capacity) {
			found->capacity = 2 * found->capacity + 64;
			struct smalti_shard_id *ids =
			    realloc(found->ids, (size_t)found->capacity * sizeof(*ids));
			if (!ids) {
				status = smalti_fail(error, SMALTI_ENOMEM, "no memory for a list of shards");
				break;
			}
			found->ids = ids;
		}
		found->ids[found->count++] = id;
	}
	closedir(entries);
	return status;
}

/* When lines were lost, so were shards that may be whole. */
static int adopt_all(struct smalti_checker *checker, struct smalti_journal *journal,
		     struct smalti_error *error)
{
	struct found found = {0};
	int status = find_shards(checker->directory, &found, error);
	if (found.count)
		qsort(found.ids, (size_t)found.count, sizeof(*found.ids), by_remake);
	for (int64_t i = 0; i < found.count && status == 0; i++)
		status = adopt(checker, journal, &found.ids[i], error);
	free(found.ids);
	return status;
}

static int repair_journal(struct smalti_checker *checker, struct smalti_journal *journal,
			  struct smalti_error *error)
{
	struct smalti_error absent = SMALTI_NO_ERROR; /* then it is made, empty */
	if (!checker->journal_broken)
		return smalti_journal_read(journal, checker->directory, NULL, error);
	(void)smalti_journal_read(journal, checker->directory, &smalti_journal_ignore, &absent);
	if (absent.code && absent.code != SMALTI_ENOENT)
		return smalti_fail(error, absent.code, "%s", absent.message);
	return smalti_journal_rewrite(journal, checker->directory, error);
}

static int repair_shards(struct smalti_checker *checker, struct smalti_journal *journal,
			 struct smalti_error *error)
{
	int status = 0;
	for (int64_t i = 0; i < checker->journal.count && status == 0; i++)
		if (checker->broken[i])
			status = drop(checker, journal, checker->journal.entries[i], error);
	return status;
}

static int clean(struct smalti_checker *checker, const struct smalti_journal *journal, int64_t now,
		 struct smalti_error *error)
{
	struct smalti_claim *list = NULL;
	int64_t count = 0;
	struct smalti_claims *claims = smalti_claims_open(checker->directory, SMALTI_LEASE, NULL, error);
	int status = claims ? smalti_claims_list(claims, now, &list, &count, error) : -1;
	smalti_claims_close(claims);
	if (status == 0)
		status = smalti_directory_clean(checker->directory, journal, list, count, error);
	free(list);
	return status;
}

static int repair(struct smalti_checker *checker, int64_t now, struct smalti_error *error)
{
	struct smalti_journal journal = {0};
	int status = smalti_directory_prepare(checker->directory, error) || repair_extract(checker, error) ||
			     repair_journal(checker, &journal, error) ||
			     repair_shards(checker, &journal, error) || adopt_all(checker, &journal, error) ||
			     clean(checker, &journal, now, error)
			 ? -1
			 : 0;
	if (status == 0) {
		smalti_manifest_remove(checker->directory);
		const bool whole = checker->result->left == 0 && checker->items >= 0 &&
				   smalti_journal_covers(&journal, checker->items);
		status = whole ? smalti_directory_complete(checker->directory, &journal, error)
			       : smalti_failed_rebuild(checker->directory, &journal, error);
	}
	smalti_journal_free(&journal);
	return status;
}

int smalti_checker_repair(struct smalti_checker *checker, struct smalti_error *error)
{
	return smalti_checker_locked(checker, repair, error);
}
