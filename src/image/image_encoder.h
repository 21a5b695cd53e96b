/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IMAGE_IMAGE_ENCODER_H
#define SMALTI_IMAGE_IMAGE_ENCODER_H

#include "image/image_writer.h"

#include <stdbool.h>
#include <stdio.h>

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

#endif
