/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "base/sealed.h"
#include "store/checker.h"
#include "store/directory.h"

#include <xxhash.h>

/* Tells whether a failure is of the machine, not of the directory. */
static bool is_fatal(const struct smalti_error *cause)
{
	return cause->code != SMALTI_OK && !smalti_is_of_input(cause->code);
}

/* Fails if neither extract.json nor manifest.json is there. */
static int check_directory(const struct smalti_checker *checker, struct smalti_error *error)
{
	const int extract = smalti_find_in(checker->directory, "extract.json", error);
	const int found = extract ? extract : smalti_find_in(checker->directory, "manifest.json", error);
	if (found)
		return found < 0 ? -1 : 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "%s: no directory of features, for it has neither extract.json nor manifest.json",
			   checker->directory);
}

/* Reads how many items there should be, if that is said: by smalti extract of its list, by a manifest of its
 * shards. */
static void find_items(struct smalti_checker *checker, const cJSON *object)
{
	(void)smalti_json_int(object, "items", SMALTI_JSON_REQUIRED, 0, SMALTI_ITEMS_MAX, &checker->items,
			      NULL);
}

static int check_extract(struct smalti_checker *checker, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	SCOPED(cJSON_Delete) cJSON *identity = smalti_directory_identity(checker->directory, &cause);
	checker->extract_broken = !identity;
	checker->items = -1;
	find_items(checker, cJSON_GetObjectItemCaseSensitive(identity, "list"));
	if (!checker->extract_broken)
		return 0;
	if (is_fatal(&cause) || cause.code == SMALTI_EUNSUPPORTED) /* another version's: not damaged */
		return smalti_pass(error, &cause);
	smalti_checker_say_error(checker, "damaged", "extract.json", -1, NULL, &cause);
	return 0;
}

static int read_manifest(struct smalti_checker *checker, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	const int there = smalti_find_in(checker->directory, "manifest.json", error);
	if (there < 0)
		return -1;
	if (!there) {
		smalti_checker_say(checker, "unfinished", "manifest.json",
				   "is not there, for the extraction was not brought to its end");
		return 0;
	}
	SCOPED(free) char *path = smalti_format(error, "%s/manifest.json", checker->directory);
	if (!path)
		return -1;
	checker->manifest = smalti_sealed_read(path, &cause);
	if (is_fatal(&cause))
		return smalti_pass(error, &cause);
	if (!checker->manifest)
		smalti_checker_say_error(checker, "damaged", "manifest.json", -1, NULL, &cause);
	find_items(checker, cJSON_GetObjectItemCaseSensitive(checker->manifest, "totals"));
	return 0;
}

/* Checks a file that the manifest has a checksum of. */
static int check_listed(struct smalti_checker *checker, const cJSON *listed, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	const char *text = "";
	uint64_t wanted = 0, found;
	int64_t bytes;
	SCOPED(free) char *path = smalti_format(error, "%s/%s", checker->directory, listed->string);
	if (!path)
		return -1;
	const int status = smalti_file_digest(path, &found, &bytes, &cause);
	if (status && is_fatal(&cause))
		return smalti_pass(error, &cause);
	if (status)
		smalti_checker_say_error(checker, "missing", listed->string, -1, NULL, &cause);
	else if (smalti_json_string(listed, "xxh3", SMALTI_JSON_REQUIRED, &text, NULL) ||
		 !smalti_hex_parse(text, &wanted) || wanted != found)
		smalti_checker_say(checker, "damaged", listed->string,
				   "its checksum is not what manifest.json says");
	return 0;
}

/* Tells whether no shard is damaged; otherwise all lists of them are, too. */
static bool all_described(const struct smalti_shards *shards)
{
	bool all = true;
	for (int64_t i = 0; i < shards->count; i++)
		all = all && shards->entries[i].described && !shards->entries[i].overlaps;
	return all;
}

/* Checks a shard that the manifest has. */
static void check_listed_shard(struct smalti_checker *checker, const cJSON *listed)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(listed, "file"));
	struct smalti_shard_id id;
	if (!name || !smalti_shard_name_parse(name, &id) || smalti_shards_find(&checker->shards, &id))
		return;
	smalti_checker_say(checker, "missing", name, "is not there, but manifest.json has it");
	checker->lost += id.end - id.first;
}

static int check_manifest(struct smalti_checker *checker, struct smalti_error *error)
{
	const cJSON *listed;
	cJSON_ArrayForEach (listed, cJSON_GetObjectItemCaseSensitive(checker->manifest, "files"))
		if (strcmp(listed->string, "extract.json") != 0 && check_listed(checker, listed, error))
			return -1; /* extract.json has been looked at */
	cJSON_ArrayForEach (listed, cJSON_GetObjectItemCaseSensitive(checker->manifest, "shards"))
		check_listed_shard(checker, listed);
	if (checker->manifest && all_described(&checker->shards) &&
	    !smalti_manifest_fits(checker->directory, &checker->shards))
		smalti_checker_say(checker, "different", "manifest.json", "is of other shards");
	const int joined = smalti_find_in(checker->directory, "features.h5", error);
	if (joined < 0)
		return -1;
	if (joined && !checker->manifest)
		smalti_checker_say(checker, "unfinished", "features.h5", "is in no manifest.json");
	return 0;
}

static void check_gaps(struct smalti_checker *checker)
{
	int64_t at = 0;
	const int64_t last = checker->shards.count;
	for (int64_t i = 0; i <= last; i++) {
		const struct smalti_shard_id *id = i < last ? &checker->shards.entries[i].id : NULL;
		const int64_t first = id ? id->first : checker->items;
		if (first > at)
			smalti_checker_say(checker, "gap", "extract.json",
					   "items %" PRId64 " to %" PRId64 " are not committed", at,
					   first - 1);
		at = id && id->end > at ? id->end : at;
	}
}

static void say_stray(void *user, const char *name)
{
	smalti_checker_say(user, "stray", name, "belongs to no process and is no shard");
}

int smalti_checker_clean(struct smalti_checker *checker, int64_t now, const struct smalti_strays *strays,
			 struct smalti_error *error)
{
	SCOPED(smalti_claims_close)
	struct smalti_claims *claims = smalti_claims_open(checker->directory, strays ? 0 : SMALTI_LEASE, NULL,
							  smalti_part_remove, error);
	return claims
		   ? smalti_directory_clean(checker->directory, &checker->shards, claims, now, strays, error)
		   : -1;
}

/* Returns an equal hash for lines in any order. */
static uint64_t hash_lines(const char *text)
{
	uint64_t sum = 0;
	for (const char *end; (end = strchr(text, '\n')); text = end + 1)
		sum += XXH3_64bits(text, (size_t)(end - text) + 1);
	return sum + (*text != '\0');
}

/* Checks failed.jsonl if no manifest has its checksum. */
static int check_failed(struct smalti_checker *checker, struct smalti_error *error)
{
	if (checker->manifest || !all_described(&checker->shards))
		return 0;
	const int there = smalti_find_in(checker->directory, "failed.jsonl", error);
	if (there < 0)
		return -1;
	struct smalti_error cause = SMALTI_NO_ERROR;
	size_t length;
	SCOPED(free) char *path = smalti_format(error, "%s/failed.jsonl", checker->directory);
	SCOPED(free) char *found = NULL;
	SCOPED(free) char *wanted = smalti_failed_print(checker->directory, &checker->shards, error);
	if (path)
		found = there ? smalti_file_read(path, SIZE_MAX / 2, &length, &cause)
			      : smalti_format(error, "%s", "");
	const int status = path && wanted ? 0 : -1;
	if (status == 0 && !found)
		smalti_checker_say_error(checker, "damaged", "failed.jsonl", -1, NULL, &cause);
	else if (status == 0 && hash_lines(found) != hash_lines(wanted))
		smalti_checker_say(checker, "different", "failed.jsonl",
				   "does not list the failures that the shards have");
	return status;
}

static void count(struct smalti_checker *checker)
{
	const struct smalti_store_totals totals = smalti_shards_totals(&checker->shards, 0, INT64_MAX);
	checker->result->shards = totals.shards;
	checker->result->rows = totals.items;
	checker->result->failures = totals.failures;
	checker->result->bytes = totals.bytes;
}

/* Reads which shards are there, and what they say of themselves as far as it can be read. */
static int find_shards(struct smalti_checker *checker, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	if (smalti_shards_read(&checker->shards, checker->directory, error))
		return -1;
	if (smalti_shards_describe(&checker->shards, checker->directory, &cause) && is_fatal(&cause))
		return smalti_pass(error, &cause);
	return 0;
}

/* Holds the lock, so that nobody is between one file and the next. What was committed meanwhile counts,
 * too. */
static int check_lists(struct smalti_checker *checker, int64_t now, struct smalti_error *error)
{
	if (find_shards(checker, error))
		return -1;
	count(checker);
	if (read_manifest(checker, error) || check_manifest(checker, error) || check_failed(checker, error))
		return -1;
	check_gaps(checker);
	const struct smalti_strays told = {say_stray, checker};
	return smalti_checker_clean(checker, now, &told, error);
}

static int check_locked(struct smalti_checker *checker, int64_t now, struct smalti_error *error)
{
	const int status = check_lists(checker, now, error);
	return status == 0 && checker->options->repair && checker->result->problems
		   ? smalti_checker_repair(checker, now, error)
		   : status;
}

/* Checks with the time by the directory's clock. A directory that cannot be written to cannot be locked, and
 * is only looked at. */
static int lock_and_check(struct smalti_checker *checker, struct smalti_error *error)
{
	const struct smalti_verify_options *o = checker->options;
	const struct smalti_lock_wait wait = {o->waiting, o->user, SMALTI_LEASE};
	if (!o->repair && access(checker->directory, W_OK | X_OK) && (errno == EACCES || errno == EROFS))
		return check_locked(checker, (int64_t)(smalti_wall_clock() * 1e9), error);
	SCOPED(smalti_heartbeat_stop)
	struct smalti_heartbeat *heartbeat = smalti_heartbeat_start(SMALTI_LEASE, error);
	SCOPED(smalti_lock_close)
	struct smalti_lock *lock =
	    heartbeat ? smalti_lock_open(checker->directory, &wait, heartbeat, error) : NULL;
	int64_t now;
	if (!lock || smalti_lock_acquire(lock, &now, error))
		return -1;
	const int status = check_locked(checker, now, error);
	smalti_lock_release(lock);
	return status;
}

static int check(struct smalti_checker *checker, struct smalti_error *error)
{
	return check_directory(checker, error) || check_extract(checker, error) ||
		       find_shards(checker, error) || smalti_checker_shards(checker, error) ||
		       lock_and_check(checker, error)
		   ? -1
		   : 0;
}

int smalti_verify(const char *directory, const struct smalti_verify_options *options,
		  struct smalti_verify_result *result, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	static const struct smalti_verify_options defaults;
	if (smalti_check_text(directory, "directory of features", error) ||
	    smalti_check_given(result, "result of the check", error))
		return -1;
	options = options ? options : &defaults;
	*result = (struct smalti_verify_result){0};
	struct smalti_checker checker = {.directory = directory, .options = options, .result = result};
	const int status = check(&checker, error);
	cJSON_Delete(checker.manifest);
	smalti_shards_free(&checker.shards);
	return status;
}
