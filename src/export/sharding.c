/* SPDX-License-Identifier: Apache-2.0 */
#include "export/export.h"

static void describe_text(cJSON *captions, const char *caption, const struct smalti_features_text *text,
			  const char *name)
{
	cJSON *object = cJSON_AddObjectToObject(captions, caption);
	cJSON_AddStringToObject(object, "features", name);
	cJSON_AddNumberToObject(object, "tokens", (double)text->tokens);
	cJSON *ids = cJSON_AddArrayToObject(object, "ids");
	for (int64_t i = 0; i < text->tokens; i++)
		cJSON_AddItemToArray(ids, cJSON_CreateNumber(text->ids[i]));
}

static void describe_image(cJSON *item, const struct smalti_features_image *image, const char *name)
{
	cJSON *object = cJSON_AddObjectToObject(item, "picture");
	cJSON_AddStringToObject(object, "features", name);
	cJSON_AddNumberToObject(object, "height", (double)image->height);
	cJSON_AddNumberToObject(object, "width", (double)image->width);
	cJSON_AddNumberToObject(object, "ratio", image->ratio);
}

static char *describe(const struct smalti_export_run *run, const struct smalti_features_row *row,
		      char *const *names, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *item = cJSON_CreateObject();
	cJSON_AddNumberToObject(item, "index", (double)row->index);
	cJSON_AddStringToObject(item, "key", row->key);
	cJSON *captions = run->info.caption_count ? cJSON_AddObjectToObject(item, "captions") : NULL;
	for (int i = 0; i < run->info.caption_count; i++)
		if (names[i])
			describe_text(captions, run->info.captions[i], &row->texts[i], names[i]);
	if (names[run->info.caption_count])
		describe_image(item, &row->image, names[run->info.caption_count]);
	char *text = cJSON_PrintUnformatted(item);
	if (!text)
		smalti_fail(error, SMALTI_ENOMEM, "out of memory for an item");
	return text;
}

char *smalti_export_shard_path(const struct smalti_export_run *run, const char *extension,
			       struct smalti_error *error)
{
	return smalti_format(error, "%s/features-%06" PRId64 ".%s", run->options->output, run->shards,
			     extension);
}

static int make_names(const struct smalti_export_run *run, const struct smalti_features_row *row,
		      char **names, struct smalti_error *error)
{
	for (int i = 0; i <= run->info.caption_count; i++)
		if (smalti_export_feature(run, row, i).count > 0 &&
		    !(names[i] = run->kind->name_feature(run, row, i, error)))
			return -1;
	return 0;
}

static int open_shard(struct smalti_export_run *run, struct smalti_error *error)
{
	if (!run->in_shard && run->kind->open_shard(run, error))
		return -1;
	run->in_shard = true;
	return 0;
}

static int close_shard(struct smalti_export_run *run, struct smalti_error *error)
{
	run->in_shard = false;
	if (run->kind->close_shard(run, error))
		return -1;
	run->shards++;
	run->progress->files += run->kind->files;
	run->settled = true;
	return 0;
}

static int add_row(struct smalti_export_run *run, const struct smalti_features_row *row,
		   struct smalti_error *error)
{
	char *names[SMALTI_EXPORT_FEATURES_MAX] = {NULL};
	SCOPED(free)
	char *text = make_names(run, row, names, error) ? NULL : describe(run, row, names, error);
	const int status = text ? run->kind->add(run, row, names, text, error) : -1;
	for (int i = 0; i < SMALTI_EXPORT_FEATURES_MAX; i++)
		free(names[i]);
	return status;
}

int smalti_export_shard_row(struct smalti_export_run *run, const struct smalti_features_row *row,
			    struct smalti_error *error)
{
	if (open_shard(run, error) || add_row(run, row, error))
		return -1;
	return run->kind->is_full(run) ? close_shard(run, error) : 0;
}

int smalti_export_shard_settle(struct smalti_export_run *run, bool last, struct smalti_error *error)
{
	if (!last)
		return 0;
	run->settled = true;
	return run->in_shard ? close_shard(run, error) : 0;
}
