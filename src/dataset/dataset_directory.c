/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "dataset/dataset_format.h"

/* A directory is a list in an unlinked file: its order does not change, and nothing of it stays in memory. */

/* Reads the file STEM.EXTENSION: NULL with an error, or without one if there is none. */
static char *read_beside(const struct smalti_dataset_text *s, const char *stem, size_t stem_length,
			 const char *extension, size_t *length, struct smalti_error *error)
{
	SCOPED(free)
	char *path = smalti_format(error, "%s/%.*s.%s", s->source->path, (int)stem_length, stem, extension);
	char *text = NULL;
	if (path && smalti_find_file(path, error) > 0)
		text = smalti_file_read(path, SMALTI_ITEM_LIMIT, length, error);
	return text;
}

static void read_captions(const struct smalti_dataset_text *s, const char *stem, size_t stem_length,
			  struct smalti_dataset_entry *entry)
{
	bool all = true;
	size_t length = 0;
	for (int i = 0; i < s->options->caption_count; i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		char *text = read_beside(s, stem, stem_length, s->options->captions[i], &length, &error);
		smalti_dataset_set_caption(entry, i, text, length, &error);
		all = all && (text || error.code);
	}
	if (all)
		return;
	struct smalti_error error = SMALTI_NO_ERROR;
	SCOPED(free) char *json = read_beside(s, stem, stem_length, "json", &length, &error);
	if (json || error.code)
		smalti_dataset_parse_captions(json, length, s->options, entry, &error);
}

/* Reads the list's next entry: returns what it is, with its path as the reader's item; 0 at the end, -1. */
static int next_entry(struct smalti_dataset_text *s, struct smalti_error *error)
{
	const int kind = smalti_byte_next(&s->reader);
	smalti_item_begin(&s->reader);
	int byte = kind;
	while (byte != EOF && (byte = smalti_byte_next(&s->reader)) != '\0')
		smalti_item_add(&s->reader, byte);
	if (smalti_item_end(&s->reader, error) < 0)
		return -1;
	return byte == EOF ? 0 : kind;
}

/* Skips tars, which are no items beside images. */
static int next_name(struct smalti_dataset_text *s, struct smalti_error *error)
{
	int kind;
	do
		kind = next_entry(s, error);
	while (kind == SMALTI_WALK_TAR);
	return kind;
}

static enum smalti_dataset_status next_file(void *state, bool texts, struct smalti_dataset_entry *entry,
					    struct smalti_error *error)
{
	struct smalti_dataset_text *s = state;
	const int kind = next_name(s, error);
	if (kind <= 0)
		return kind < 0 ? SMALTI_DATASET_FAILED : SMALTI_DATASET_END;
	const char *name = s->reader.item;
	const struct smalti_caption_text key = {.text = name, .length = s->reader.length};
	if (kind == SMALTI_WALK_IMAGE)
		entry->path = key;
	else
		entry->id = key;
	if (texts)
		read_captions(s, name,
			      kind == SMALTI_WALK_IMAGE ? (size_t)(strrchr(name, '.') - name) : key.length,
			      entry);
	return SMALTI_DATASET_RECORD;
}

const struct smalti_dataset_format smalti_dataset_directory = {
    smalti_dataset_text_new, smalti_dataset_text_close, smalti_dataset_text_tell, smalti_dataset_text_seek,
    next_file};
