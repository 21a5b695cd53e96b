/* SPDX-License-Identifier: Apache-2.0 */
#include "store/checker.h"
#include "store/digest.h"
#include "store/failed.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What all shards have in common, of the first one that can be read. */
struct common {
	struct smalti_shard *shard;
	char name[SMALTI_SHARD_NAME];
};

/* One shard under examination. */
struct examined {
	struct smalti_checker *checker;
	const struct smalti_journal_entry *entry;
	const char *name, *path;
	bool broken;
};

/* Not where it was made anew or taken out since. */
static bool is_wanted(const struct examined *examined)
{
	struct smalti_journal journal = {0};
	const bool wanted =
	    smalti_journal_read(&journal, examined->checker->directory, &smalti_journal_ignore, NULL) ||
	    smalti_journal_names(&journal, examined->entry);
	smalti_journal_free(&journal);
	return wanted;
}

static void say(struct examined *examined, const char *kind, int64_t row, const char *key,
		const struct smalti_error *cause)
{
	if (cause->code == SMALTI_ENOENT && !is_wanted(examined))
		return;
	smalti_checker_say_error(examined->checker, kind, examined->name, row, key, cause);
	examined->broken = true;
}

static int check_file(struct examined *examined, bool *same, struct smalti_error *error)
{
	const struct smalti_journal_entry *entry = examined->entry;
	struct smalti_error cause = SMALTI_NO_ERROR;
	uint64_t digest;
	int64_t bytes;
	*same = false;
	if (smalti_file_digest(examined->path, &digest, &bytes, &cause) == 0) {
		*same = digest == entry->digest && bytes == entry->bytes;
		return 0;
	}
	if (!smalti_is_of_input(cause.code))
		return smalti_fail(error, cause.code, "%s", cause.message);
	say(examined, "missing", -1, NULL, &cause);
	return 0;
}

/* The rows of a file that is not what it was: which of them are damaged. */
static void check_rows(struct examined *examined, struct smalti_shard *shard)
{
	int64_t damaged = 0;
	for (int64_t i = smalti_shard_first(shard); i < smalti_shard_end(shard); i++) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		struct smalti_features_row row = {0};
		if (smalti_shard_row(shard, i, &row, &cause) == 0)
			continue;
		say(examined, "damaged", i, row.key, &cause);
		damaged++;
	}
	if (damaged == 0)
		smalti_checker_say(examined->checker, "damaged", examined->name,
				   "is not what the journal says, outside of its rows, which are whole");
	examined->broken = true;
}

/* Whether two say the same of how rows were made: the list may have grown, and whoever mixes instruction sets
 * was asked. */
static bool same_provenance(const char *a, const char *b)
{
	static const char *const may_differ[] = {"list", "isa"};
	cJSON *x = a ? cJSON_Parse(a) : NULL, *y = b ? cJSON_Parse(b) : NULL;
	for (size_t i = 0; i < sizeof(may_differ) / sizeof(may_differ[0]); i++) {
		cJSON_DeleteItemFromObjectCaseSensitive(x, may_differ[i]);
		cJSON_DeleteItemFromObjectCaseSensitive(y, may_differ[i]);
	}
	const bool same = x && y && cJSON_Compare(x, y, true);
	cJSON_Delete(x);
	cJSON_Delete(y);
	return same;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* The name of what differs, or NULL. */
static const char *compare(const struct smalti_shard_schema *a, const struct smalti_shard_schema *b)
{
	if (a->dtype != b->dtype)
		return "type of the values";
	if (a->caption_count != b->caption_count || a->text_width != b->text_width ||
	    a->max_tokens != b->max_tokens)
		return "captions";
	for (int i = 0; i < a->caption_count; i++)
		if (!same_text(a->captions[i], b->captions[i]))
			return "captions";
	if (a->latent_channels != b->latent_channels || a->image_size != b->image_size ||
	    a->scaling_factor < b->scaling_factor || a->scaling_factor > b->scaling_factor)
		return "pictures";
	return same_text(a->provenance, b->provenance) || same_provenance(a->provenance, b->provenance)
		   ? NULL
		   : "provenance";
}

/* What it says of itself against the journal and the other shards. */
static int check_words(struct examined *examined, struct smalti_shard *shard, const struct common *common,
		       struct smalti_error *error)
{
	const struct smalti_journal_entry *entry = examined->entry;
	struct smalti_error cause = SMALTI_NO_ERROR;
	struct smalti_failed failed = {0};
	const char *other =
	    common->shard ? compare(smalti_shard_schema(shard), smalti_shard_schema(common->shard)) : NULL;
	if (other) {
		smalti_checker_say(examined->checker, "different", examined->name, "its %s is not that of %s",
				   other, common->name);
		/* Nobody knows which of them is wrong. */
		examined->checker->result->left += examined->checker->options->repair;
	}
	if (smalti_failed_of(shard, &failed, &cause)) {
		if (!smalti_is_of_input(cause.code))
			return smalti_fail(error, cause.code, "%s", cause.message);
		say(examined, "damaged", -1, NULL, &cause);
	} else if (smalti_shard_first(shard) != entry->id.first || smalti_shard_end(shard) != entry->id.end ||
		   failed.failures != entry->failures || failed.reasons != entry->reasons) {
		smalti_checker_say(examined->checker, "different", examined->name,
				   "has other items or failures than the journal says");
		examined->broken = true;
	}
	free(failed.lines);
	return 0;
}

static int examine(struct examined *examined, struct common *common, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	bool same;
	if (check_file(examined, &same, error) || examined->broken)
		return examined->broken ? 0 : -1;
	struct smalti_shard *shard = same ? smalti_shard_open(examined->path, &cause)
					  : smalti_shard_open_damaged(examined->path, &cause);
	if (!shard && !smalti_is_of_input(cause.code))
		return smalti_fail(error, cause.code, "%s", cause.message);
	if (!shard) {
		say(examined, "damaged", -1, NULL, &cause);
		return 0;
	}
	int status = 0;
	if (same)
		status = check_words(examined, shard, common, error);
	else
		check_rows(examined, shard);
	if (common->shard || examined->broken || status) {
		smalti_shard_close(shard);
	} else {
		common->shard = shard;
		memcpy(common->name, examined->name, strlen(examined->name) + 1);
	}
	return status;
}

int smalti_checker_shards(struct smalti_checker *checker, struct smalti_error *error)
{
	struct common common = {0};
	int status = 0;
	for (int64_t i = 0; i < checker->journal.count && status == 0; i++) {
		const struct smalti_journal_entry *entry = &checker->journal.entries[i];
		char name[SMALTI_SHARD_NAME];
		smalti_shard_name(&entry->id, name);
		if (checker->options->progress)
			checker->options->progress(checker->options->user, checker->bytes_done,
						   checker->bytes);
		char *path = smalti_journal_path(checker->directory, &entry->id, error);
		struct examined examined = {checker, entry, name, path, false};
		status = path ? examine(&examined, &common, error) : -1;
		checker->broken[i] = examined.broken;
		checker->bytes_done += entry->bytes;
		free(path);
	}
	smalti_shard_close(common.shard);
	return status;
}
