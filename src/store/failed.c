/* SPDX-License-Identifier: Apache-2.0 */
#include "store/failed.h"
#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *path_of(const char *directory, struct smalti_error *error)
{
	return smalti_format(error, "%s/failed.jsonl", directory);
}

static int print(FILE *stream, const struct smalti_shard_failure *failure, struct smalti_error *error)
{
	cJSON *object = cJSON_CreateObject();
	char *line = NULL;
	if (cJSON_AddNumberToObject(object, "index", (double)failure->index) &&
	    smalti_json_add_text(object, "key", failure->key) &&
	    cJSON_AddStringToObject(object, "stage", failure->stage) &&
	    smalti_json_add_text(object, "reason", failure->reason))
		line = cJSON_PrintUnformatted(object);
	cJSON_Delete(object);
	if (!line)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a line of failed.jsonl");
	fprintf(stream, "%s\n", line);
	free(line);
	return 0;
}

static int print_all(FILE *stream, struct smalti_shard *shard, struct smalti_failed *failed,
		     struct smalti_error *error)
{
	int64_t last = -1;
	failed->reasons = smalti_shard_failure_count(shard);
	for (int64_t i = 0; i < failed->reasons; i++) {
		struct smalti_shard_failure failure;
		if (smalti_shard_failure(shard, i, &failure, error) || print(stream, &failure, error))
			return -1;
		failed->failures += failure.index != last;
		last = failure.index;
	}
	return 0;
}

int smalti_failed_of(struct smalti_shard *shard, struct smalti_failed *failed, struct smalti_error *error)
{
	*failed = (struct smalti_failed){0};
	size_t length;
	FILE *stream = open_memstream(&failed->lines, &length);
	if (!stream)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for what failed");
	int status = print_all(stream, shard, failed, error);
	if (fclose(stream) && status == 0)
		status = smalti_fail(error, SMALTI_ENOMEM, "no memory for what failed");
	if (status) {
		free(failed->lines);
		failed->lines = NULL;
	}
	return status;
}

static int append(const char *path, const char *lines, struct smalti_error *error)
{
	FILE *stream = fopen(path, "ae");
	bool failed = !stream;
	if (stream) {
		failed = fputs(lines, stream) == EOF;
		failed = fclose(stream) || failed;
	}
	return failed ? smalti_fail_errno(error, "%s: cannot be written", path) : 0;
}

/* Whether a line, as it is printed here, is of an item of the range. */
static bool is_within(const char *line, const struct smalti_shard_id *range)
{
	static const char begin[] = "{\"index\":";
	if (strncmp(line, begin, strlen(begin)) != 0)
		return false;
	const int64_t index = strtoll(line + strlen(begin), NULL, 10);
	return index >= range->first && index < range->end;
}

static int replace(const char *path, const struct smalti_shard_id *range, const char *lines,
		   struct smalti_error *error)
{
	size_t length;
	char *old = smalti_file_read(path, SIZE_MAX / 2, &length, error);
	if (!old)
		return -1;
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (!writer) {
		free(old);
		return -1;
	}
	FILE *stream = smalti_writer_stream(writer);
	for (char *line = old, *end; (end = memchr(line, '\n', length - (size_t)(line - old)));
	     line = end + 1)
		if (!is_within(line, range))
			fwrite(line, 1, (size_t)(end - line) + 1, stream);
	fputs(lines, stream);
	free(old);
	return smalti_writer_commit(writer, error);
}

int smalti_failed_add(const char *directory, const struct smalti_journal_entry *entry, const char *lines,
		      struct smalti_error *error)
{
	if (entry->replaces < 0 && !lines[0])
		return 0;
	char *path = path_of(directory, error);
	if (!path)
		return -1;
	const int status =
	    entry->replaces < 0 ? append(path, lines, error) : replace(path, &entry->id, lines, error);
	free(path);
	return status;
}

bool smalti_failed_fits(const char *directory, const struct smalti_journal *journal)
{
	int64_t wanted = 0, found = 0;
	for (int64_t i = 0; i < journal->count; i++)
		wanted += journal->entries[i].reasons;
	size_t length;
	char *path = path_of(directory, NULL);
	char *text = path ? smalti_file_read(path, SIZE_MAX / 2, &length, NULL) : NULL;
	for (const char *at = text; at && (at = strchr(at, '\n')); at++)
		found++;
	const bool fits = wanted == found && (!text || length == 0 || text[length - 1] == '\n');
	free(text);
	free(path);
	return fits;
}

static int write_shard(FILE *stream, const char *directory, const struct smalti_journal_entry *entry,
		       struct smalti_error *error)
{
	char *path = smalti_journal_path(directory, &entry->id, error);
	struct smalti_shard *shard = path ? smalti_shard_open(path, error) : NULL;
	struct smalti_failed failed = {0};
	const int status = shard ? print_all(stream, shard, &failed, error) : -1;
	smalti_shard_close(shard);
	free(path);
	return status;
}

static int write_all(FILE *stream, const char *directory, const struct smalti_journal *journal,
		     struct smalti_error *error)
{
	int status = 0;
	for (int64_t i = 0; i < journal->count && status == 0; i++)
		if (journal->entries[i].reasons > 0)
			status = write_shard(stream, directory, &journal->entries[i], error);
	return status;
}

char *smalti_failed_print(const char *directory, const struct smalti_journal *journal,
			  struct smalti_error *error)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	if (!stream) {
		smalti_fail(error, SMALTI_ENOMEM, "no memory for what failed");
		return NULL;
	}
	int status = write_all(stream, directory, journal, error);
	if (fclose(stream) && status == 0)
		status = smalti_fail(error, SMALTI_ENOMEM, "no memory for what failed");
	if (status == 0)
		return text;
	free(text);
	return NULL;
}

int smalti_failed_rebuild(const char *directory, const struct smalti_journal *journal,
			  struct smalti_error *error)
{
	char *path = path_of(directory, error);
	struct smalti_writer *writer = path ? smalti_writer_open(path, error) : NULL;
	free(path);
	if (!writer)
		return -1;
	if (write_all(smalti_writer_stream(writer), directory, journal, error) == 0)
		return smalti_writer_commit(writer, error);
	smalti_writer_abort(writer);
	return -1;
}
