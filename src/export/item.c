/* SPDX-License-Identifier: Apache-2.0 */
#include "export/sharding.h"

static void add_text(cJSON *captions, const char *caption, const struct smalti_features_text *text,
		     const char *name)
{
	cJSON *object = cJSON_AddObjectToObject(captions, caption);
	cJSON_AddStringToObject(object, "features", name);
	cJSON_AddNumberToObject(object, "tokens", (double)text->tokens);
	cJSON *ids = cJSON_AddArrayToObject(object, "ids");
	for (int64_t i = 0; i < text->tokens; i++)
		cJSON_AddItemToArray(ids, cJSON_CreateNumber(text->ids[i]));
}

static void add_image(cJSON *item, const struct smalti_features_image *image, const char *name)
{
	cJSON *object = cJSON_AddObjectToObject(item, "picture");
	cJSON_AddStringToObject(object, "features", name);
	cJSON_AddNumberToObject(object, "height", (double)image->height);
	cJSON_AddNumberToObject(object, "width", (double)image->width);
	cJSON_AddNumberToObject(object, "ratio", image->ratio);
}

char *smalti_export_describe(const struct smalti_export_run *run, const struct smalti_features_row *row,
			     char *const *names, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *item = cJSON_CreateObject();
	cJSON_AddNumberToObject(item, "index", (double)row->index);
	cJSON_AddStringToObject(item, "key", row->key);
	cJSON *captions = run->info.caption_count ? cJSON_AddObjectToObject(item, "captions") : NULL;
	for (int i = 0; i < run->info.caption_count; i++)
		if (names[i])
			add_text(captions, run->info.captions[i], &row->texts[i], names[i]);
	if (names[run->info.caption_count])
		add_image(item, &row->image, names[run->info.caption_count]);
	char *text = cJSON_PrintUnformatted(item);
	if (!text)
		smalti_fail(error, SMALTI_ENOMEM, "out of memory for an item");
	return text;
}
