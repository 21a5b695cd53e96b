/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/image.h"
#include "image/image_writer.h"

/* The bytes of a file in their order, from its stream or from memory that has all of them. The C library
 * could make a stream of memory; but it keeps a list of its streams that it goes through when it closes one,
 * and of images many are open at a time. */
struct smalti_byte_source {
	FILE *file;          /* the owner's; NULL: memory */
	const uint8_t *data; /* what is left of it */
	int64_t left;
};

/* Returns how many bytes there were; fewer than asked for at the end, or after a failure. */
int64_t smalti_byte_source_read(struct smalti_byte_source *source, void *to, int64_t bytes);
/* Tells whether the stream has failed; then errno says why. */
bool smalti_byte_source_failed(const struct smalti_byte_source *source);

/* What a format gives to image.c: a file image_FORMAT.c each. */

struct smalti_image_reader {
	char *path;
	struct smalti_byte_source source;
	int64_t file_bytes;
	struct smalti_image_limits limits;
	struct smalti_image_info info;
	int64_t next; /* row to come */
	bool failed;
	const struct smalti_image_decoder *decoder;
	void *state; /* the decoder's */
};

struct smalti_image_decoder {
	int64_t state_bytes; /* of its own state, zeros before the open */
	/* Reads the header, admits the image and sets its orientation, if it finds one. */
	int (*open)(struct smalti_image_reader *image, struct smalti_error *error);
	/* Reads `count` rows from row `next` on, 1 or more that are there. */
	int (*read_rows)(struct smalti_image_reader *image, int64_t count, uint8_t *rows,
			 struct smalti_error *error);
	void (*close)(void *state); /* frees what it points to, also after a failed open */
};

extern const struct smalti_image_decoder smalti_jpeg_decoder, smalti_png_decoder, smalti_webp_decoder;

/* Sets width and height if they are within the limits. */
int smalti_image_admit(struct smalti_image_reader *image, int64_t width, int64_t height,
		       struct smalti_error *error);
/* Fails if `bytes` are more than may be held at a time; `kind` names what has to be held whole. */
int smalti_image_hold(const struct smalti_image_reader *image, const char *kind, int64_t bytes,
		      struct smalti_error *error);

/* Returns the orientation, 1 to 8, that EXIF data (a TIFF header and what follows, with or without "Exif\0\0"
 * before it) gives to an image; 0 when it gives none, or is something else, or damaged. */
int smalti_exif_orientation(const uint8_t *bytes, int64_t size);
/* Returns the orientation of XMP data likewise, as Pillow finds it. */
int smalti_xmp_orientation(const uint8_t *bytes, int64_t size);

/* What a format gives to image_writer.c: a file write_FORMAT.c each. */

struct smalti_image_writer {
	char *path; /* for messages */
	struct smalti_writer *file;
	FILE *stream;                /* the file's */
	int64_t width, height, next; /* next row to come */
	int depth;
	bool finished;
	const struct smalti_image_encoder *encoder;
	void *state; /* the encoder's */
};

struct smalti_image_encoder {
	/* Writes what comes before the rows; leaves in `state` what the close frees, also on failure. */
	int (*open)(struct smalti_image_writer *writer, const struct smalti_image_format *format,
		    struct smalti_error *error);
	int (*write_row)(struct smalti_image_writer *writer, const void *row, struct smalti_error *error);
	int (*finish)(struct smalti_image_writer *writer, struct smalti_error *error);
	void (*close)(void *state);
};

extern const struct smalti_image_encoder smalti_png_encoder, smalti_ppm_encoder;
