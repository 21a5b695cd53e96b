/* SPDX-License-Identifier: Apache-2.0 */
#include "store/checker.h"
#include "base/file.h"
#include "store/directory.h"

#include <stdarg.h>

static void tell(struct smalti_checker *checker, const struct smalti_problem *problem)
{
	checker->result->problems++;
	if (checker->options->problem)
		checker->options->problem(checker->options->user, problem);
}

void smalti_checker_say(struct smalti_checker *checker, const char *kind, const char *file,
			const char *format, ...)
{
	char text[SMALTI_ERROR_LENGTH];
	int length = snprintf(text, sizeof(text), "%.255s: ", file);
	va_list args;
	va_start(args, format);
	vsnprintf(text + length, sizeof(text) - (size_t)length, format, args);
	va_end(args);
	struct smalti_error line = SMALTI_NO_ERROR; /* makes it one line, whatever files are called */
	smalti_fail(&line, SMALTI_ECORRUPT, "%s", text);
	tell(checker, &(struct smalti_problem){kind, file, -1, NULL, line.message});
}

void smalti_checker_say_error(struct smalti_checker *checker, const char *kind, const char *file, int64_t row,
			      const char *key, const struct smalti_error *cause)
{
	const char *text = cause->message;
	const size_t directory = strlen(checker->directory);
	if (strncmp(text, checker->directory, directory) == 0 && text[directory] == '/')
		text += directory + 1;
	tell(checker, &(struct smalti_problem){kind, file, row, key, text});
}

/* Makes extract.json again if the manifest has the identity. */
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

/* Renames a shard; the next smalti extract makes its items again. */
static int set_aside(struct smalti_checker *checker, const struct smalti_shard_entry *entry,
		     struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_shard_path(checker->directory, &entry->id, error);
	SCOPED(free) char *aside = path ? smalti_format(error, "%s.broken", path) : NULL;
	int status = aside ? 0 : -1;
	if (aside && rename(path, aside) && errno != ENOENT)
		status = smalti_fail_errno(error, "%s: cannot be renamed to %s", path, aside);
	checker->result->dropped += status == 0 && !entry->overlaps ? entry->id.end - entry->id.first : 0;
	return status;
}

static int repair_shards(struct smalti_checker *checker, struct smalti_error *error)
{
	int status = 0;
	checker->result->dropped = checker->lost;
	for (int64_t i = 0; i < checker->shards.count && status == 0; i++)
		if (checker->shards.entries[i].broken)
			status = set_aside(checker, &checker->shards.entries[i], error);
	if (status == 0)
		status = smalti_sync_directory(checker->directory, error);
	return status == 0 ? smalti_shards_read(&checker->shards, checker->directory, error) : -1;
}

int smalti_checker_repair(struct smalti_checker *checker, int64_t now, struct smalti_error *error)
{
	const struct smalti_shards *shards = &checker->shards;
	if (smalti_directory_prepare(checker->directory, error) || repair_extract(checker, error) ||
	    repair_shards(checker, error) || smalti_checker_clean(checker, now, NULL, error) ||
	    smalti_shards_describe(&checker->shards, checker->directory, error))
		return -1;
	smalti_manifest_remove(checker->directory);
	const bool whole =
	    checker->result->left == 0 && checker->items >= 0 && smalti_shards_cover(shards, checker->items);
	return whole ? smalti_directory_complete(checker->directory, shards, error)
		     : smalti_failed_rebuild(checker->directory, shards, error);
}
