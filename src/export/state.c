/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "export/export.h"

#include <xxhash.h>

enum { LARGEST = 1 << 16 };

static const int64_t MOST = (INT64_C(1) << 53) - 1;

void smalti_export_digest(const struct smalti_export_run *run, char text[SMALTI_EXPORT_DIGEST])
{
	const struct smalti_features_info *info = &run->info;
	const int64_t numbers[] = {info->rows,       info->type,       info->caption_count,
				   info->text_width, info->max_tokens, info->latent_channels,
				   info->image_size};
	uint64_t digest = XXH3_64bits(numbers, sizeof(numbers));
	for (int i = 0; i < info->caption_count; i++)
		digest = XXH3_64bits_withSeed(info->captions[i], strlen(info->captions[i]), digest);
	digest = XXH3_64bits_withSeed(info->provenance, strlen(info->provenance), digest);
	snprintf(text, SMALTI_EXPORT_DIGEST, "%016" PRIx64, digest);
}

static char *state_path(const struct smalti_export_run *run, struct smalti_error *error)
{
	return smalti_format(error, "%s/" SMALTI_EXPORT_STATE, run->options->output);
}

static int compare(const struct smalti_export_run *run, const cJSON *state, struct smalti_error *error)
{
	const char *format = NULL, *digest = NULL, *differs = NULL;
	int64_t shard_bytes = 0;
	char features[SMALTI_EXPORT_DIGEST];
	smalti_export_digest(run, features);
	if (smalti_json_string(state, "format", SMALTI_JSON_REQUIRED, &format, error) ||
	    smalti_json_string(state, "features", SMALTI_JSON_REQUIRED, &digest, error) ||
	    smalti_json_int(state, "shard_bytes", SMALTI_JSON_REQUIRED, 0, MOST, &shard_bytes, error))
		return -1;
	if (strcmp(format, run->kind->name) != 0)
		differs = "in another format";
	else if (strcmp(digest, features) != 0)
		differs = "of other features, or of fewer or more of them";
	else if (shard_bytes != run->options->shard_bytes)
		differs = "in files of another size";
	if (!differs)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "%s: holds an export %s; name another directory, or begin anew (--restart)",
			   run->options->output, differs);
}

static int read_state(struct smalti_export_run *run, const cJSON *state, struct smalti_error *error)
{
	struct smalti_export_progress *progress = run->progress;
	if (compare(run, state, error) ||
	    smalti_json_int(state, "rows", SMALTI_JSON_REQUIRED, 0, run->info.rows, &progress->rows, error) ||
	    smalti_json_int(state, "failed", SMALTI_JSON_REQUIRED, 0, MOST, &progress->failed, error) ||
	    smalti_json_int(state, "empty", SMALTI_JSON_REQUIRED, 0, MOST, &progress->empty, error) ||
	    smalti_json_int(state, "shards", SMALTI_JSON_REQUIRED, 0, MOST, &run->shards, error) ||
	    smalti_json_bool(state, "complete", SMALTI_JSON_REQUIRED, &progress->complete, error))
		return -1;
	progress->safe = progress->rows;
	return 1;
}

int smalti_export_load(struct smalti_export_run *run, struct smalti_error *error)
{
	SCOPED(free) char *path = state_path(run, error);
	if (!path)
		return -1;
	int status = 0;
	if (run->options->restart) {
		if (unlink(path) && errno != ENOENT && errno != ENOTDIR)
			status = smalti_fail_errno(error, "%s: cannot be removed", path);
	} else if ((status = smalti_find_file(path, error)) > 0) {
		SCOPED(cJSON_Delete) cJSON *state = smalti_json_read(path, LARGEST, error);
		status = state ? read_state(run, state, error) : -1;
	}
	return status;
}

int smalti_export_save(const struct smalti_export_run *run, struct smalti_error *error)
{
	const struct smalti_export_progress *progress = run->progress;
	char features[SMALTI_EXPORT_DIGEST];
	smalti_export_digest(run, features);
	SCOPED(cJSON_Delete) cJSON *state = cJSON_CreateObject();
	cJSON_AddStringToObject(state, "format", run->kind->name);
	cJSON_AddStringToObject(state, "features", features);
	cJSON_AddNumberToObject(state, "shard_bytes", (double)run->options->shard_bytes);
	cJSON_AddNumberToObject(state, "rows", (double)progress->rows);
	cJSON_AddNumberToObject(state, "failed", (double)progress->failed);
	cJSON_AddNumberToObject(state, "empty", (double)progress->empty);
	cJSON_AddNumberToObject(state, "shards", (double)run->shards);
	cJSON_AddBoolToObject(state, "complete", progress->complete);
	SCOPED(free) char *path = state_path(run, error);
	const int status = path ? smalti_json_write(path, state, error) : -1;
	if (!status)
		run->progress->safe = progress->rows;
	return status;
}
