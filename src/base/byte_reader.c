/* SPDX-License-Identifier: Apache-2.0 */
#include "base/byte_reader.h"

enum { FIRST_CAPACITY = 4096 };

void smalti_byte_reader_seek(struct smalti_byte_reader *reader, int64_t offset)
{
	reader->cause = lseek(reader->file, offset, SEEK_SET) < 0 ? errno : 0;
	reader->end = offset;
	reader->next = reader->filled = 0;
}

void smalti_byte_reader_free(struct smalti_byte_reader *reader)
{
	free(reader->item);
	reader->item = NULL;
	reader->capacity = reader->length = 0;
}

bool smalti_byte_fill(struct smalti_byte_reader *reader)
{
	const ssize_t got = reader->cause ? 0 : read(reader->file, reader->chunk, sizeof(reader->chunk));
	if (got < 0)
		reader->cause = errno;
	reader->next = 0;
	reader->filled = got > 0 ? (size_t)got : 0;
	reader->end += (int64_t)reader->filled;
	return got > 0;
}

bool smalti_item_grow(struct smalti_byte_reader *reader)
{
	reader->too_long = reader->too_long || reader->length >= reader->limit;
	if (reader->too_long || reader->no_memory)
		return false;
	const size_t more = reader->capacity ? 2 * reader->capacity : FIRST_CAPACITY;
	const size_t capacity = more < reader->limit ? more : reader->limit + 1;
	char *item = realloc(reader->item, capacity);
	reader->no_memory = !item;
	if (!item)
		return false;
	reader->item = item;
	reader->capacity = capacity;
	return true;
}

void smalti_item_begin(struct smalti_byte_reader *reader)
{
	reader->length = 0;
	reader->too_long = reader->no_memory = false;
}

int smalti_item_end(struct smalti_byte_reader *reader, struct smalti_error *error)
{
	if (reader->item || smalti_item_grow(reader))
		reader->item[reader->length] = '\0';
	if (reader->cause) {
		errno = reader->cause;
		return smalti_fail_errno(error, "cannot be read");
	}
	if (reader->no_memory)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for an item of more than %zu bytes",
				   reader->capacity);
	if (reader->too_long)
		return smalti_fail(error, SMALTI_EFORMAT, "longer than %zu bytes", reader->limit);
	return 0;
}

int smalti_item_line(struct smalti_byte_reader *reader, struct smalti_error *error)
{
	int byte = smalti_byte_next(reader);
	const bool any = byte != EOF;
	smalti_item_begin(reader);
	for (; byte != EOF && byte != '\n'; byte = smalti_byte_next(reader))
		smalti_item_add(reader, byte);
	if (reader->too_long)
		smalti_fail(error, SMALTI_EFORMAT, "the line is longer than %zu bytes", reader->limit);
	if (smalti_item_end(reader, error) < 0)
		return -1;
	if (reader->length > 0 && reader->item[reader->length - 1] == '\r')
		reader->item[--reader->length] = '\0';
	return any;
}
