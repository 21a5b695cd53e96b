/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/item.h"

#include <stdlib.h>
#include <string.h>

static char *copy(const char *text, struct smalti_error *error)
{
	char *made = strdup(text);
	if (!made)
		smalti_fail(error, SMALTI_ENOMEM, "no memory for the name of an item");
	return made;
}

int smalti_item_open(struct smalti_extract_item *item, const struct smalti_record *record,
		     struct smalti_error *error)
{
	*item = (struct smalti_extract_item){
	    .index = record->index, .offset = record->image.offset, .bytes = record->image.bytes};
	item->key = copy(record->key, error);
	if (record->image.path)
		item->path = copy(record->image.path, error);
	return item->key && (item->path || !record->image.path) ? 0 : -1;
}

void smalti_item_fail(struct smalti_extract_item *item, const char *stage, const char *reason)
{
	if (item->failure_count == SMALTI_ITEM_FAILURES_MAX)
		return;
	item->failures[item->failure_count++] =
	    (struct smalti_item_failure){stage, strndup(reason, strcspn(reason, "\n"))};
}

void smalti_item_close(struct smalti_extract_item *item)
{
	for (int i = 0; i < SMALTI_FEATURES_CAPTIONS_MAX; i++) {
		free(item->texts[i].ids);
		free(item->texts[i].values);
		free(item->texts[i].problem);
	}
	for (int i = 0; i < item->failure_count; i++)
		free(item->failures[i].reason);
	smalti_input_image_close(item->input);
	free(item->file);
	free((void *)item->image.values);
	free(item->path);
	free(item->key);
	*item = (struct smalti_extract_item){0};
}

struct smalti_features_row smalti_item_row(const struct smalti_extract_item *item)
{
	struct smalti_features_row row = {.index = item->index, .key = item->key, .image = item->image};
	for (int i = 0; i < SMALTI_FEATURES_CAPTIONS_MAX; i++)
		row.texts[i] = (struct smalti_features_text){.tokens = item->texts[i].tokens,
							     .ids = item->texts[i].ids,
							     .values = item->texts[i].values};
	return row;
}
