/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Reads a file byte by byte, into an item that a parser builds. Initialise with zeros, except the file and
 * the limit. */
struct smalti_byte_reader {
	int file;     /* the caller's; no other code reads from it */
	size_t limit; /* bytes beyond it are read, but not kept */
	int64_t end;  /* position in the file where the chunk ends */
	size_t next, filled;
	int cause; /* errno of a failed read: the file seems to end there */
	char *item;
	size_t length, capacity;
	bool too_long, no_memory;
	unsigned char chunk[1 << 16];
};

/* Moves to an offset, in a file that can seek. */
void smalti_byte_reader_seek(struct smalti_byte_reader *reader, int64_t offset);
void smalti_byte_reader_free(struct smalti_byte_reader *reader); /* frees the item; the file stays open */

/* Returns the position of the next byte. */
static inline int64_t smalti_byte_offset(const struct smalti_byte_reader *reader)
{
	return reader->end - (int64_t)(reader->filled - reader->next);
}

/* Reads the next chunk; false at the end. */
bool smalti_byte_fill(struct smalti_byte_reader *reader);

/* Return the next byte, or EOF; the second one also consumes it. */
static inline int smalti_byte_peek(struct smalti_byte_reader *reader)
{
	return reader->next < reader->filled || smalti_byte_fill(reader) ? reader->chunk[reader->next] : EOF;
}

static inline int smalti_byte_next(struct smalti_byte_reader *reader)
{
	const int byte = smalti_byte_peek(reader);
	reader->next += byte != EOF;
	return byte;
}

bool smalti_item_grow(struct smalti_byte_reader *reader);

/* Appends a byte to the item. */
static inline void smalti_item_add(struct smalti_byte_reader *reader, int byte)
{
	if (reader->length + 1 < reader->capacity || smalti_item_grow(reader))
		reader->item[reader->length++] = (char)byte;
}

void smalti_item_begin(struct smalti_byte_reader *reader);
/* Ends the item with a NUL. -1: a read failed, or there was no memory; or, with SMALTI_EFORMAT in `error`,
 * the item was too long: then reading can continue. */
int smalti_item_end(struct smalti_byte_reader *reader, struct smalti_error *error);

/* Reads the next line into the item, without its end. 1; 0: there is none; -1 as above. */
int smalti_item_line(struct smalti_byte_reader *reader, struct smalti_error *error);
