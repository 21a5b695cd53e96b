/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/file.h"
#include "dataset/dataset_text.h"
#include "dataset/dataset_walk.h"

#include <stdlib.h>
#include <string.h>

/* A directory is a list in an unlinked file: its order is the same to the end, and nothing of it stays in
 * memory.
 */
struct directory {
	struct smalti_dataset_text text; /* its object: the captions of STEM.json */
	char *texts[SMALTI_DATASET_CAPTIONS_MAX];
};

static void forget(struct directory *s)
{
	for (int i = 0; i < SMALTI_DATASET_CAPTIONS_MAX; i++) {
		free(s->texts[i]);
		s->texts[i] = NULL;
	}
	smalti_dataset_text_forget(&s->text);
}

/* The file STEM.EXTENSION: NULL with an error, or without one if there is none. */
static char *read_beside(const struct directory *s, const char *stem, size_t stem_length,
			 const char *extension, size_t *length, struct smalti_error *error)
{
	char *path =
	    smalti_format(error, "%s/%.*s.%s", s->text.source->path, (int)stem_length, stem, extension);
	char *text = NULL;
	if (path && smalti_find_file(path, error) > 0)
		text = smalti_file_read(path, SMALTI_ITEM_LIMIT, length, error);
	free(path);
	return text;
}

static bool read_text(struct directory *s, const char *stem, size_t stem_length, int caption,
		      struct smalti_dataset_entry *entry)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_caption_text *to = &entry->captions[caption];
	char *problem = entry->problems[2 + caption];
	s->texts[caption] =
	    read_beside(s, stem, stem_length, s->text.options->captions[caption], &to->length, &error);
	to->text = s->texts[caption];
	if (error.code) {
		snprintf(problem, sizeof(entry->problems[0]), "%.255s", error.message);
		to->problem = problem;
	}
	return to->text || to->problem;
}

static void read_captions(struct directory *s, const char *stem, size_t stem_length,
			  struct smalti_dataset_entry *entry)
{
	bool all = true;
	for (int i = 0; i < s->text.options->caption_count; i++)
		all = read_text(s, stem, stem_length, i, entry) && all;
	if (all)
		return;
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t length = 0;
	char *json = read_beside(s, stem, stem_length, "json", &length, &error);
	if (json || error.code)
		smalti_dataset_parse_captions(json, length, s->text.options, entry, &s->text.object, &error);
	free(json);
}

/* The list's next entry: what it is, and its path as the reader's item; 0 at the end, -1. */
static int next_entry(struct directory *s, struct smalti_error *error)
{
	const int kind = smalti_byte_next(&s->text.reader);
	smalti_item_begin(&s->text.reader);
	int byte = kind;
	while (byte != EOF && (byte = smalti_byte_next(&s->text.reader)) != '\0')
		smalti_item_add(&s->text.reader, byte);
	if (smalti_item_end(&s->text.reader, error) < 0)
		return -1;
	return byte == EOF ? 0 : kind;
}

/* The same without tars, which are no items beside images. */
static int next_name(struct directory *s, struct smalti_error *error)
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
	struct directory *s = state;
	const int kind = next_name(s, error);
	forget(s);
	if (kind <= 0)
		return kind < 0 ? SMALTI_DATASET_FAILED : SMALTI_DATASET_END;
	const char *name = s->text.reader.item;
	const struct smalti_caption_text key = {.text = name, .length = s->text.reader.length};
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

static void close_directory(void *state)
{
	struct directory *s = state;
	forget(s);
	smalti_dataset_text_close(s);
}

static void *open_directory(const struct smalti_dataset_source *source, struct smalti_error *error)
{
	return smalti_dataset_text_open(source, sizeof(struct directory), error);
}

const struct smalti_dataset_format smalti_dataset_directory = {
    open_directory, close_directory, smalti_dataset_text_tell, smalti_dataset_text_seek, next_file};
