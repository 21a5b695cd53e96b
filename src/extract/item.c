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
	*item = (struct smalti_extract_item){.row = {.index = record->index, .key = copy(record->key, error)},
					     .offset = record->image.offset,
					     .bytes = record->image.bytes};
	if (record->image.path)
		item->path = copy(record->image.path, error);
	return item->row.key && (item->path || !record->image.path) ? 0 : -1;
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
		free((void *)item->row.texts[i].ids);
		free((void *)item->row.texts[i].values);
		free(item->problems[i]);
	}
	for (int i = 0; i < item->failure_count; i++)
		free(item->failures[i].reason);
	smalti_input_image_close(item->input);
	free(item->file);
	free((void *)item->row.image.values);
	free(item->path);
	free((void *)item->row.key);
	*item = (struct smalti_extract_item){0};
}
