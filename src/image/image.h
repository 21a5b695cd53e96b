/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Images of JPEG, PNG and WebP files, recognised by what they hold, whatever their names, as 8-bit RGB rows
 * from top to bottom. The values are those of Pillow's Image.open(path).convert("RGB"), which the reference
 * uses: transparency is dropped, not blended; of 16 bits a sample the high 8 are kept, but 16-bit grey is
 * clipped at 255; CMYK is taken as Adobe's inverted one; colour profiles and gamma are not applied.
 *
 * A damaged file is an error (EFORMAT, with about which row), even where its decoder would go on with a
 * warning. What is not read, or is past the limits, is EUNSUPPORTED. */

/* What a file may ask for, checked before memory is allocated for it. */
struct smalti_image_limits {
	int64_t pixels; /* width x height */
	/* Memory for an image that its format does not give row by row: WebP, progressive JPEG, interlaced
	 * PNG. Others take some rows. */
	int64_t bytes;
};

struct smalti_image_info {
	const char *format;    /* "JPEG", "PNG", "WebP" */
	int64_t width, height; /* as stored */
	/* How a viewer would turn or mirror what is stored: 1 to 8 as in EXIF; 1, not at all, where the file
	 * does not say (before the pixels, if it is a PNG). The rows come as stored: turning is the caller's.
	 */
	int orientation;
};

struct smalti_image_reader;

/* Opens an image, without its pixels. */
struct smalti_image_reader *smalti_image_open(const char *path, const struct smalti_image_limits *limits,
					      struct smalti_error *error);
/* Opens an image that is in memory, which has to stay until the close; `name` is for messages. */
struct smalti_image_reader *smalti_image_open_memory(const char *name, const void *data, int64_t bytes,
						     const struct smalti_image_limits *limits,
						     struct smalti_error *error);
const struct smalti_image_info *smalti_image_info(const struct smalti_image_reader *image);

/* Reads rows first to first + count - 1, [count, width, 3]; each call begins where the last ended. With the
 * last row the file's end is checked. After a failure only the close is left. */
int smalti_image_read_rows(struct smalti_image_reader *image, int64_t first, int64_t count, uint8_t *rows,
			   struct smalti_error *error);

void smalti_image_close(struct smalti_image_reader *image); /* NULL is fine */
