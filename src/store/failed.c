/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/json.h"
#include "store/directory.h"

static char *path_of(const char *directory, struct smalti_error *error)
{
	return smalti_format(error, "%s/failed.jsonl", directory);
}

static int print(FILE *stream, const struct smalti_shard_failure *failure, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	SCOPED(free) char *line = NULL;
	if (cJSON_AddNumberToObject(object, "index", (double)failure->index) &&
	    smalti_json_add_text(object, "key", failure->key) &&
	    cJSON_AddStringToObject(object, "stage", failure->stage) &&
	    smalti_json_add_text(object, "reason", failure->reason))
		line = cJSON_PrintUnformatted(object);
	if (!line)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a line of failed.jsonl");
	fprintf(stream, "%s\n", line);
	return 0;
}

static int print_shard(FILE *stream, struct smalti_shard *shard, struct smalti_error *error)
{
	int status = 0;
	for (int64_t i = 0; i < smalti_shard_info(shard)->failures && status == 0; i++) {
		struct smalti_shard_failure failure;
		status =
		    smalti_shard_failure(shard, i, &failure, error) ? -1 : print(stream, &failure, error);
	}
	return status;
}

int smalti_failed_append(const char *directory, struct smalti_shard *shard, struct smalti_error *error)
{
	if (smalti_shard_info(shard)->failures == 0)
		return 0;
	SCOPED(free) char *path = path_of(directory, error);
	FILE *stream = path ? fopen(path, "ae") : NULL;
	int status = stream ? print_shard(stream, shard, error) : -1;
	if (path && (!stream || fclose(stream)))
		status = smalti_fail_errno(error, "%s: cannot be written", path);
	return status;
}

bool smalti_failed_fits(const char *directory, const struct smalti_shards *shards)
{
	int64_t wanted = 0, found = 0;
	for (int64_t i = 0; i < shards->count; i++)
		wanted += shards->entries[i].reasons;
	size_t length;
	SCOPED(free) char *path = path_of(directory, NULL);
	SCOPED(free) char *text = path ? smalti_file_read(path, SIZE_MAX / 2, &length, NULL) : NULL;
	for (const char *at = text; at && (at = strchr(at, '\n')); at++)
		found++;
	return wanted == found && (!text || length == 0 || text[length - 1] == '\n');
}

static int print_all(FILE *stream, const char *directory, const struct smalti_shards *shards,
		     struct smalti_error *error)
{
	int status = 0;
	for (int64_t i = 0; i < shards->count && status == 0; i++) {
		if (shards->entries[i].reasons == 0)
			continue;
		SCOPED(free) char *path = smalti_shard_path(directory, &shards->entries[i].id, error);
		SCOPED(smalti_shard_close)
		struct smalti_shard *shard = path ? smalti_shard_open(path, error) : NULL;
		status = shard ? print_shard(stream, shard, error) : -1;
	}
	return status;
}

char *smalti_failed_print(const char *directory, const struct smalti_shards *shards,
			  struct smalti_error *error)
{
	char *text = NULL;
	size_t length;
	FILE *stream = open_memstream(&text, &length);
	int status = stream ? print_all(stream, directory, shards, error) : -1;
	if (!stream || (fclose(stream) && status == 0))
		status = smalti_fail(error, SMALTI_ENOMEM, "no memory for what failed");
	if (status == 0)
		return text;
	free(text);
	return NULL;
}

int smalti_failed_rebuild(const char *directory, const struct smalti_shards *shards,
			  struct smalti_error *error)
{
	SCOPED(free) char *path = path_of(directory, error);
	struct smalti_writer *writer = path ? smalti_writer_open(path, error) : NULL;
	if (!writer)
		return -1;
	if (print_all(smalti_writer_stream(writer), directory, shards, error) == 0)
		return smalti_writer_commit(writer, error);
	smalti_writer_abort(writer);
	return -1;
}
