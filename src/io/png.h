/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IO_PNG_H
#define SMALTI_IO_PNG_H

#include "base/error.h"

#include <stdint.h>

/* RGB pictures as PNG files. Writing streams rows, so that a picture need never be whole in memory;
 * the same rows and texts give the same bytes (there is no time stamp). */

/* A line of metadata: the key is 1 to 79 printable ASCII characters without leading, trailing or
 * double spaces; the value is UTF-8 without NUL. */
struct smalti_png_text {
	const char *key, *value;
};

struct smalti_png_format {
	int64_t width, height; /* 1 to 2^31-1 */
	int depth;             /* bits of a sample: 8 (uint8_t) or 16 (uint16_t in the machine's order) */
	const struct smalti_png_text *texts;
	int text_count;
};

struct smalti_png;

/* Begins a file that appears as `path` at the commit. The texts are written here and not kept. */
struct smalti_png *smalti_png_create(const char *path, const struct smalti_png_format *format,
				     struct smalti_error *error);

/* Rows first to first + count - 1, [count, width, 3] samples; each call begins where the last ended. */
int smalti_png_write_rows(struct smalti_png *png, int64_t first, int64_t count, const void *rows,
			  struct smalti_error *error);

/* Ends the picture once all rows are there. After a failure only the abort is left. */
int smalti_png_finish(struct smalti_png *png, struct smalti_error *error);

/* Puts the finished file on the disk under its name, from any thread. Frees `png`; on failure no file
 * is left. */
int smalti_png_commit(struct smalti_png *png, struct smalti_error *error);

/* Leaves no file and frees `png`; NULL is fine. */
void smalti_png_abort(struct smalti_png *png);

/* The text under `key` that stands before the picture's data: *value is to be freed, or NULL when
 * there is none. The file may be anything. */
int smalti_png_read_text(const char *path, const char *key, char **value, struct smalti_error *error);

/* Any PNG as 8-bit RGB (gray and palette widened, 16 bits rounded, transparency dropped), [height,
 * width, 3]. Free with free(). Pictures of more than `limit` pixels are refused. */
uint8_t *smalti_png_read_rgb8(const char *path, int64_t limit, int64_t *width, int64_t *height,
			      struct smalti_error *error);

#endif
