/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset_text.h"

#include "base/alloc.h"

#include <stdlib.h>

void *smalti_dataset_text_open(const struct smalti_dataset_source *source, int64_t bytes,
			       struct smalti_error *error)
{
	struct smalti_dataset_text *text = smalti_calloc(1, bytes, error);
	if (!text)
		return NULL;
	text->source = source;
	text->options = source->options;
	text->line = 1;
	text->reader.file = source->list ? fileno(source->list) : source->file;
	text->reader.limit = SMALTI_ITEM_LIMIT;
	smalti_byte_reader_seek(&text->reader, 0);
	return text;
}

void smalti_dataset_text_close(void *state)
{
	struct smalti_dataset_text *text = state;
	smalti_byte_reader_free(&text->reader);
	free(text);
}

struct smalti_dataset_place smalti_dataset_text_tell(const void *state)
{
	const struct smalti_dataset_text *text = state;
	return (struct smalti_dataset_place){.offset = smalti_byte_offset(&text->reader), .line = text->line};
}

void smalti_dataset_text_seek(void *state, const struct smalti_dataset_place *place)
{
	struct smalti_dataset_text *text = state;
	text->line = place->line;
	smalti_byte_reader_seek(&text->reader, place->offset);
}
