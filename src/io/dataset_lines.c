/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "base/utf8.h"
#include "io/byte_reader.h"
#include "io/dataset_format.h"

#include <stdlib.h>
#include <string.h>

/* JSON Lines: an object a line. */
struct lines {
	const struct smalti_dataset_options *options;
	cJSON *object; /* the last item */
	int64_t line;  /* that comes next, from 1 */
	struct smalti_byte_reader reader;
};

/* Skips blank lines. 1, 0 at the end, -1. */
static int next_text(struct lines *s, const char **text, struct smalti_error *error)
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
	struct lines *s = state;
	cJSON_Delete(s->object);
	s->object = NULL;
	const char *text;
	int status = next_text(s, &text, error);
	if (status == 0)
		return SMALTI_DATASET_END;
	if (status > 0) {
		const size_t length = (size_t)(s->reader.item + s->reader.length - text);
		status = smalti_dataset_parse(text, length, s->options, entry, &s->object, error);
	}
	if (status < 0)
		smalti_error_prefix(error, "line %lld", (long long)s->line);
	s->line++;
	return status < 0 ? smalti_dataset_failure(error) : SMALTI_DATASET_RECORD;
}

static void *open_lines(struct smalti_dataset_source *source, struct smalti_error *error)
{
	struct lines *s = smalti_calloc(1, sizeof(*s), error);
	if (!s)
		return NULL;
	s->options = source->options;
	s->reader.file = source->file;
	s->reader.limit = SMALTI_ITEM_LIMIT;
	s->line = 1;
	return s;
}

static void close_lines(void *state)
{
	struct lines *s = state;
	cJSON_Delete(s->object);
	smalti_byte_reader_free(&s->reader);
	free(s);
}

static struct smalti_dataset_place tell_line(const void *state)
{
	const struct lines *s = state;
	return (struct smalti_dataset_place){.offset = smalti_byte_offset(&s->reader), .line = s->line};
}

static void seek_line(void *state, const struct smalti_dataset_place *place)
{
	struct lines *s = state;
	s->line = place->line;
	smalti_byte_reader_seek(&s->reader, place->offset);
}

const struct smalti_dataset_format smalti_dataset_lines = {open_lines, close_lines, tell_line, seek_line,
							   next_line};
