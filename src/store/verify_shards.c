/* SPDX-License-Identifier: Apache-2.0 */
#include "shard/layout.h"
#include "store/checker.h"

/* The first shard that can be read, with which the others are compared. */
struct common {
	struct smalti_shard *shard;
	char name[SMALTI_SHARD_NAME];
};

/* One shard under examination. */
struct examined {
	struct smalti_checker *checker;
	struct smalti_shard_entry *entry;
	const char *name, *path;
};

/* Tells whether the shard was not made anew or set aside since. */
static bool is_wanted(const struct examined *examined)
{
	struct smalti_shards now = {0};
	const bool wanted = smalti_shards_read(&now, examined->checker->directory, NULL) ||
			    smalti_shards_find(&now, &examined->entry->id);
	smalti_shards_free(&now);
	return wanted;
}

static void say(struct examined *examined, int64_t row, const char *key, const struct smalti_error *cause)
{
	if (cause->code == SMALTI_ENOENT && !is_wanted(examined))
		return;
	smalti_checker_say_error(examined->checker, "damaged", examined->name, row, key, cause);
	if (cause->code != SMALTI_EUNSUPPORTED)
		examined->entry->broken = true;
	else /* another version's, which may be whole */
		examined->checker->result->left += examined->checker->options->repair;
}

static int check_rows(struct examined *examined, struct smalti_shard *shard, struct smalti_error *error)
{
	for (int64_t i = smalti_shard_info(shard)->first; i < smalti_shard_info(shard)->end; i++) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		struct smalti_features_row row = {0};
		if (smalti_shard_row(shard, i, &row, &cause) == 0)
			continue;
		if (!smalti_is_of_input(cause.code))
			return smalti_pass(error, &cause);
		say(examined, i, row.key, &cause);
	}
	return 0;
}

/* Tells whether rows were made alike: the list may have grown, and different instruction sets were allowed by
 * the user. */
static bool same_provenance(const char *a, const char *b)
{
	static const char *const may_differ[] = {"list", "isa"};
	SCOPED(cJSON_Delete) cJSON *x = cJSON_Parse(a), *y = cJSON_Parse(b);
	for (size_t i = 0; i < COUNT_OF(may_differ); i++) {
		cJSON_DeleteItemFromObjectCaseSensitive(x, may_differ[i]);
		cJSON_DeleteItemFromObjectCaseSensitive(y, may_differ[i]);
	}
	return x && y && cJSON_Compare(x, y, true);
}

/* Returns the name of what differs, or NULL. */
static const char *compare(const struct smalti_shard_schema *a, const struct smalti_shard_schema *b)
{
	const char *other = smalti_shard_schema_difference(a, b);
	if (other || strcmp(a->provenance, b->provenance) == 0)
		return other;
	return same_provenance(a->provenance, b->provenance) ? NULL : "provenance";
}

/* Checks what a shard says of itself against its name and the other shards. */
static void check_words(struct examined *examined, struct smalti_shard *shard, const struct common *common)
{
	const struct smalti_shard_id *id = &examined->entry->id;
	const char *other = common->shard ? compare(smalti_shard_info(shard)->schema,
						    smalti_shard_info(common->shard)->schema)
					  : NULL;
	if (other) {
		smalti_checker_say(examined->checker, "different", examined->name, "its %s is not that of %s",
				   other, common->name);
		/* Nobody knows which of them is wrong. */
		examined->checker->result->left += examined->checker->options->repair;
	}
	if (smalti_shard_info(shard)->first != id->first || smalti_shard_info(shard)->end != id->end) {
		smalti_checker_say(examined->checker, "damaged", examined->name,
				   "has other items than its name says");
		examined->entry->broken = true;
	}
}

/* Opens a shard that is damaged outside of its values once more, to find out which of its rows are. */
static struct smalti_shard *open_shard(struct examined *examined, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	struct smalti_shard *shard = smalti_shard_open(examined->path, &cause);
	if (shard)
		return shard;
	if (!smalti_is_of_input(cause.code)) {
		smalti_pass(error, &cause);
		return NULL;
	}
	shard = smalti_shard_open_unchecked(examined->path, NULL);
	if (!shard || check_rows(examined, shard, error) == 0)
		if (!examined->entry->broken)
			say(examined, -1, NULL, &cause);
	smalti_shard_close(shard);
	return NULL;
}

static int examine(struct examined *examined, struct common *common, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	if (examined->entry->overlaps) {
		smalti_checker_say(examined->checker, "overlap", examined->name,
				   "has items that another shard has, too");
		examined->entry->broken = true;
		return 0;
	}
	struct smalti_shard *shard = open_shard(examined, &cause);
	int status = shard ? check_rows(examined, shard, &cause) : 0;
	if (shard)
		check_words(examined, shard, common);
	if (cause.code)
		status = smalti_pass(error, &cause);
	if (common->shard || examined->entry->broken || status) {
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
	const struct smalti_shards *shards = &checker->shards;
	int status = 0;
	const int64_t bytes = smalti_shards_totals(shards, 0, INT64_MAX).bytes;
	int64_t done = 0;
	for (int64_t i = 0; i < shards->count && status == 0; i++) {
		struct smalti_shard_entry *entry = &shards->entries[i];
		char name[SMALTI_SHARD_NAME];
		smalti_shard_name(&entry->id, name);
		if (checker->options->progress)
			checker->options->progress(checker->options->user, done, bytes);
		SCOPED(free) char *path = smalti_shard_path(checker->directory, &entry->id, error);
		struct examined examined = {checker, entry, name, path};
		status = path ? examine(&examined, &common, error) : -1;
		done += entry->bytes;
	}
	smalti_shard_close(common.shard);
	return status;
}
