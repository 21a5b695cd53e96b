/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* RGB images as files. Writing streams rows, so that an image need never be whole in memory; the same rows
 * and texts give the same bytes (there is no time stamp). */

enum smalti_image_encoding {
	SMALTI_IMAGE_PNG,
	SMALTI_IMAGE_PPM, /* binary (P6), 16-bit samples big-endian; it has no room for texts, which are left
			     out */
};

/* A line of metadata: the key is 1 to 79 printable ASCII characters without leading, trailing or
 * double spaces; the value is UTF-8 without NUL. */
struct smalti_image_text {
	const char *key, *value;
};

struct smalti_image_format {
	enum smalti_image_encoding encoding;
	int64_t width, height; /* 1 to 2^31-1 */
	int depth;             /* bits of a sample: 8 (uint8_t) or 16 (uint16_t in the machine's order) */
	const struct smalti_image_text *texts;
	int text_count;
};

struct smalti_image_writer;

/* Begins a file that appears as `path` at the commit ("-": see smalti_writer). The texts are written here and
 * not kept. */
struct smalti_image_writer *smalti_image_create(const char *path, const struct smalti_image_format *format,
						struct smalti_error *error);

/* Begins an image in a stream, which stays the caller's: nothing is committed, so that after the finish, too,
 * the abort follows. `name` is for messages. */
struct smalti_image_writer *smalti_image_begin(FILE *stream, const char *name,
					       const struct smalti_image_format *format,
					       struct smalti_error *error);

/* Writes rows first to first + count - 1, [count, width, 3] samples; each call begins where the last
 * ended. */
int smalti_image_write_rows(struct smalti_image_writer *writer, int64_t first, int64_t count,
			    const void *rows, struct smalti_error *error);

/* Ends the image once all rows are there. After a failure only the abort is left. */
int smalti_image_finish(struct smalti_image_writer *writer, struct smalti_error *error);

/* Puts the bytes of a finished file on the disk, before it is placed. */
int smalti_image_sync(struct smalti_image_writer *writer, struct smalti_error *error);

/* Puts the finished file on the disk under its name, from any thread. Frees `writer`; on failure no file
 * is left. */
int smalti_image_commit(struct smalti_image_writer *writer, struct smalti_error *error);

/* Gives the finished file its name; the caller syncs the directory before it relies on that. Otherwise as
 * the commit. */
int smalti_image_place(struct smalti_image_writer *writer, struct smalti_error *error);

/* Leaves no file and frees `writer`; NULL is fine. */
void smalti_image_abort(struct smalti_image_writer *writer);
