/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/image_decoder.h"

#include <png.h>

/* libpng on a file, up to the pixels, with bounded memory; errors are kept in `cause` and jump. */
struct smalti_png_reader {
	struct smalti_byte_source source;
	const char *path; /* the caller's, as are the source's bytes */
	png_structp png;
	png_infop info;
	int64_t largest; /* what libpng may allocate in one piece */
	int64_t row, height;
	struct smalti_error cause;
};

/* Reads nothing yet. Close it also on failure. */
int smalti_png_reader_open(struct smalti_png_reader *reader, struct smalti_byte_source source,
			   const char *path, struct smalti_error *error);
void smalti_png_reader_close(struct smalti_png_reader *reader);

/* Reads all that comes before the pixels; sets the height. */
int smalti_png_reader_header(struct smalti_png_reader *reader, struct smalti_error *error);

/* Reads the metadata under `key` that stands before the image's data in a PNG file: *value is to be freed, or
 * NULL when there is none. The file may be anything. */
int smalti_png_read_text(const char *path, const char *key, char **value, struct smalti_error *error);
