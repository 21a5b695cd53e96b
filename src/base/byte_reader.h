/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A file byte after byte, and the item that a parser puts together of them. Initialise with zeros but for the
 * file and the limit. */
struct smalti_byte_reader {
	int file;     /* the caller's; nobody else reads from it */
	size_t limit; /* what is longer is read, but not kept */
	int64_t end;  /* in the file, of what the chunk holds */
	size_t next, filled;
	int cause; /* errno of a read that failed: the file seems to end there */
	char *item;
	size_t length, capacity;
	bool too_long, no_memory;
	unsigned char chunk[1 << 16];
};

/* Goes on from there, in a file where one can. */
void smalti_byte_reader_seek(struct smalti_byte_reader *reader, int64_t offset);
void smalti_byte_reader_free(struct smalti_byte_reader *reader); /* the item; the file stays open */

/* Where the next byte lies. */
static inline int64_t smalti_byte_offset(const struct smalti_byte_reader *reader)
{
	return reader->end - (int64_t)(reader->filled - reader->next);
}

/* Reads the next chunk; false at the end. */
bool smalti_byte_fill(struct smalti_byte_reader *reader);

/* The next byte, or EOF, without or with going on behind it. */
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

/* Puts a byte to the end of the item. */
static inline void smalti_item_add(struct smalti_byte_reader *reader, int byte)
{
	if (reader->length + 1 < reader->capacity || smalti_item_grow(reader))
		reader->item[reader->length++] = (char)byte;
}

void smalti_item_begin(struct smalti_byte_reader *reader);
/* Puts a NUL behind the item. -1: a read failed, or there was no memory; or, with SMALTI_EFORMAT in `error`,
 * the item was too long: after that reading can go on. */
int smalti_item_end(struct smalti_byte_reader *reader, struct smalti_error *error);

/* Puts the next line together, without its end. 1, 0: there is none, -1 as above. */
int smalti_item_line(struct smalti_byte_reader *reader, struct smalti_error *error);
