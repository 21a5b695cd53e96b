/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"
#include "dataset/dataset_format.h"

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

void *smalti_dataset_text_new(const struct smalti_dataset_source *source, struct smalti_error *error)
{
	return smalti_dataset_text_open(source, sizeof(struct smalti_dataset_text), error);
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

/* JSON Lines: an object a line. */

/* Skips blank lines. Returns 1, 0 at the end, or -1. */
static int next_text(struct smalti_dataset_text *s, const char **text, struct smalti_error *error)
{
	for (;; s->line++) {
		const int status = smalti_item_line(&s->reader, error);
		if (status <= 0)
			return status;
		const char *item = s->reader.item;
		*text = item + (s->line == 1 ? smalti_utf8_mark(item, s->reader.length) : 0);
		if (strspn(*text, " \t\r") < (size_t)(item + s->reader.length - *text))
			return 1;
	}
}

static enum smalti_dataset_status next_line(void *state, bool texts, struct smalti_dataset_entry *entry,
					    struct smalti_error *error)
{
	(void)texts;
	struct smalti_dataset_text *s = state;
	const char *text;
	int status = next_text(s, &text, error);
	if (status == 0)
		return SMALTI_DATASET_END;
	if (status > 0) {
		const size_t length = (size_t)(s->reader.item + s->reader.length - text);
		status = smalti_dataset_parse(text, length, s->options, entry, error);
	}
	if (status < 0)
		smalti_error_prefix(error, "line %lld", (long long)s->line);
	s->line++;
	return status < 0 ? smalti_dataset_failure(error) : SMALTI_DATASET_RECORD;
}

const struct smalti_dataset_format smalti_dataset_lines = {smalti_dataset_text_new, smalti_dataset_text_close,
							   smalti_dataset_text_tell, smalti_dataset_text_seek,
							   next_line};
