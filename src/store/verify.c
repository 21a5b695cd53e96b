/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/argument.h"
#include "base/file.h"
#include "store/checker.h"
#include "store/digest.h"
#include "store/failed.h"
#include "store/sealed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Not what is wrong with the directory, but with the machine. */
static bool is_fatal(const struct smalti_error *cause)
{
	return cause->code != SMALTI_OK && !smalti_is_of_input(cause->code);
}

/* Without either it is another's. */
static int check_directory(struct smalti_checker *checker, bool *journal, struct smalti_error *error)
{
	const int extract = smalti_find_in(checker->directory, "extract.json", error);
	const int found = extract < 0 ? -1 : smalti_find_in(checker->directory, "journal", error);
	if (found < 0)
		return -1;
	*journal = found;
	if (!extract && !found)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "%s: no directory of features, for it has neither extract.json nor a journal",
		    checker->directory);
	return 0;
}

/* How many there should be, if that is said: by smalti extract of its list, by a manifest of its shards. */
static void find_items(struct smalti_checker *checker, const cJSON *object)
{
	(void)smalti_json_int(object, "items", SMALTI_JSON_REQUIRED, 0, SMALTI_ITEMS_MAX, &checker->items,
			      NULL);
}

static int check_extract(struct smalti_checker *checker, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	cJSON *identity = smalti_directory_identity(checker->directory, &cause);
	checker->extract_broken = !identity;
	checker->items = -1;
	find_items(checker, cJSON_GetObjectItemCaseSensitive(identity, "list"));
	cJSON_Delete(identity);
	if (!checker->extract_broken)
		return 0;
	if (is_fatal(&cause))
		return smalti_fail(error, cause.code, "%s", cause.message);
	smalti_checker_say_error(checker, "damaged", "extract.json", -1, NULL, &cause);
	return 0;
}

static void damaged_line(void *user, int64_t line, const char *what)
{
	struct smalti_checker *checker = user;
	checker->journal_broken = true;
	smalti_checker_say(checker, strstr(what, "overlap") ? "overlap" : "damaged", "journal",
			   "line %" PRId64 ": %s", line, what);
}

static int check_journal(struct smalti_checker *checker, bool there, struct smalti_error *error)
{
	const struct smalti_journal_watch on_progress = {damaged_line, checker};
	if (!there) {
		checker->journal_broken = true;
		smalti_checker_say(checker, "missing", "journal", "is not there");
		return 0;
	}
	if (smalti_journal_read(&checker->journal, checker->directory, &on_progress, error))
		return -1;
	if (checker->journal.torn) {
		checker->journal_broken = true;
		smalti_checker_say(checker, "damaged", "journal",
				   "%" PRId64 " bytes behind line %" PRId64 " are no whole line",
				   checker->journal.torn, checker->journal.lines);
	}
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
	char *path = smalti_format(error, "%s/manifest.json", checker->directory);
	checker->manifest = path ? smalti_sealed_read(path, &cause) : NULL;
	free(path);
	if (!path || is_fatal(&cause))
		return smalti_fail(error, cause.code, "%s", cause.message);
	if (!checker->manifest)
		smalti_checker_say_error(checker, "damaged", "manifest.json", -1, NULL, &cause);
	find_items(checker, cJSON_GetObjectItemCaseSensitive(checker->manifest, "totals"));
	return 0;
}

/* A file that the manifest has a checksum of. */
static int check_listed(struct smalti_checker *checker, const cJSON *listed, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	const char *text = "";
	uint64_t wanted = 0, found;
	int64_t bytes;
	char *path = smalti_format(error, "%s/%s", checker->directory, listed->string);
	if (!path)
		return -1;
	const int status = smalti_file_digest(path, &found, &bytes, &cause);
	free(path);
	if (status && is_fatal(&cause))
		return smalti_fail(error, cause.code, "%s", cause.message);
	if (status)
		smalti_checker_say_error(checker, "missing", listed->string, -1, NULL, &cause);
	else if (smalti_json_string(listed, "xxh3", SMALTI_JSON_REQUIRED, &text, NULL) ||
		 !smalti_hex_parse(text, &wanted) || wanted != found)
		smalti_checker_say(checker, "damaged", listed->string,
				   "its checksum is not what manifest.json says");
	return 0;
}

/* extract.json and the journal have been looked at. */
static int check_manifest(struct smalti_checker *checker, struct smalti_error *error)
{
	const cJSON *listed;
	cJSON_ArrayForEach (listed, cJSON_GetObjectItemCaseSensitive(checker->manifest, "files")) {
		const bool seen =
		    !strcmp(listed->string, "journal") || !strcmp(listed->string, "extract.json");
		if (!seen && check_listed(checker, listed, error))
			return -1;
	}
	if (checker->manifest && !checker->journal_broken &&
	    !smalti_manifest_fits(checker->directory, &checker->now))
		smalti_checker_say(checker, "different", "manifest.json",
				   "is of another state of the journal");
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
	const int64_t last = checker->now.count;
	for (int64_t i = 0; i <= last; i++) {
		const struct smalti_shard_id *id = i < last ? &checker->now.entries[i].id : NULL;
		const int64_t first = id ? id->first : checker->items;
		if (first > at)
			smalti_checker_say(checker, "gap", "journal",
					   "items %" PRId64 " to %" PRId64 " are not committed", at,
					   first - 1);
		at = id ? id->end : at;
	}
}

static void say_stray(void *user, const char *name)
{
	smalti_checker_say(user, "orphan", name, "belongs to no process and no line of the journal");
}

static int check_strays(struct smalti_checker *checker, int64_t now, struct smalti_error *error)
{
	struct smalti_claim *claims = NULL;
	int64_t count = 0;
	struct smalti_claims *all = smalti_claims_open(checker->directory, 0, NULL, error);
	int status = all ? smalti_claims_list(all, now, &claims, &count, error) : -1;
	smalti_claims_close(all);
	if (status == 0)
		status = smalti_directory_strays(checker->directory, &checker->now, claims, count, say_stray,
						 checker, error);
	free(claims);
	return status;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The lines of a text, which is cut into them, in alphabetical order. */
static char **sort_lines(char *text, int64_t *count, struct smalti_error *error)
{
	int64_t most = 1;
	for (const char *c = text; (c = strchr(c, '\n')); c++)
		most++;
	char **lines = smalti_calloc(most, sizeof(*lines), error);
	*count = 0;
	for (char *next = text; lines && next && *next;) {
		lines[(*count)++] = next;
		next = strchr(next, '\n');
		if (next)
			*next++ = '\0';
	}
	if (lines)
		qsort(lines, (size_t)*count, sizeof(*lines), by_text);
	return lines;
}

static int compare_lines(struct smalti_checker *checker, char *found, char *wanted,
			 struct smalti_error *error)
{
	int64_t found_count, wanted_count;
	char **a = sort_lines(found, &found_count, error), **b = sort_lines(wanted, &wanted_count, error);
	bool same = a && b && found_count == wanted_count;
	for (int64_t i = 0; same && i < found_count; i++)
		same = strcmp(a[i], b[i]) == 0;
	if (a && b && !same)
		smalti_checker_say(checker, "different", "failed.jsonl",
				   "does not list the failures that the shards have");
	free(a);
	free(b);
	return a && b ? 0 : -1;
}

/* Where no manifest has its checksum: its lines may be in any order. */
static int check_failed(struct smalti_checker *checker, struct smalti_error *error)
{
	bool whole = !checker->manifest && !checker->journal_broken;
	for (int64_t i = 0; i < checker->journal.count; i++)
		whole = whole && !checker->broken[i];
	if (!whole)
		return 0;
	const int there = smalti_find_in(checker->directory, "failed.jsonl", error);
	if (there < 0)
		return -1;
	struct smalti_error cause = SMALTI_NO_ERROR;
	size_t length;
	char *path = smalti_format(error, "%s/failed.jsonl", checker->directory);
	char *found = NULL, *wanted = smalti_failed_print(checker->directory, &checker->now, error);
	if (path)
		found = there ? smalti_file_read(path, SIZE_MAX / 2, &length, &cause) : strdup("");
	int status = path && wanted ? 0 : -1;
	if (status == 0 && found)
		status = compare_lines(checker, found, wanted, error);
	else if (status == 0)
		smalti_checker_say_error(checker, "damaged", "failed.jsonl", -1, NULL, &cause);
	free(wanted);
	free(found);
	free(path);
	return status;
}

static void count(struct smalti_checker *checker)
{
	struct smalti_verify_result *result = checker->result;
	result->shards = checker->journal.count;
	for (int64_t i = 0; i < checker->journal.count; i++) {
		const struct smalti_journal_entry *entry = &checker->journal.entries[i];
		result->rows += entry->id.end - entry->id.first;
		result->failures += entry->failures;
		result->bytes += entry->bytes;
	}
	checker->bytes = result->bytes;
}

/* With the lock held, so that nobody is between one file and the next: what was committed meanwhile counts,
 * too. */
static int check_lists(struct smalti_checker *checker, int64_t now, struct smalti_error *error)
{
	struct smalti_error absent = SMALTI_NO_ERROR; /* which was told */
	if (smalti_journal_read(&checker->now, checker->directory, &smalti_journal_ignore, &absent) &&
	    absent.code != SMALTI_ENOENT)
		return smalti_fail(error, absent.code, "%s", absent.message);
	if (read_manifest(checker, error) || check_manifest(checker, error) || check_failed(checker, error))
		return -1;
	check_gaps(checker);
	return check_strays(checker, now, error);
}

static int check(struct smalti_checker *checker, struct smalti_error *error)
{
	bool journal;
	if (check_directory(checker, &journal, error) || check_extract(checker, error) ||
	    check_journal(checker, journal, error))
		return -1;
	count(checker);
	checker->broken = smalti_calloc(checker->journal.count + 1, sizeof(*checker->broken), error);
	if (!checker->broken || smalti_checker_shards(checker, error))
		return -1;
	return smalti_checker_locked(checker, check_lists, error);
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
	int status = check(&checker, error);
	if (status == 0 && options->repair && result->problems)
		status = smalti_checker_repair(&checker, error);
	cJSON_Delete(checker.manifest);
	free(checker.broken);
	smalti_journal_free(&checker.journal);
	smalti_journal_free(&checker.now);
	return status;
}
