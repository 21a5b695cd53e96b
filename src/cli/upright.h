/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_UPRIGHT_H
#define SMALTI_CLI_UPRIGHT_H

#include "io/image.h"

/* A picture as a viewer shows it, turned by its EXIF orientation, with sides cropped about the centre to
 * multiples. Rows pass by, but a picture that has to be turned is held whole. */
struct smalti_upright {
	int64_t width, height;             /* after cropping */
	int64_t whole_width, whole_height; /* before */
	const char *path;                  /* the caller's */
	struct smalti_image *image;
	int64_t left, top;   /* of the crop */
	int64_t most_bytes;  /* that may be held */
	unsigned char *held; /* the stored picture, or one of its rows */
};

/* SMALTI_EUNSUPPORTED for a side shorter than `multiple`; else as smalti_image_open(). Reads no pixels. */
int smalti_upright_open(struct smalti_upright *picture, const char *path, int64_t multiple,
			const struct smalti_image_limits *limits, struct smalti_error *error);
/* Rows first … first + count − 1, each call beginning where the last ended: RGB in [-1, 1]. With the last one
 * the rest of the file is checked. */
int smalti_upright_rows(struct smalti_upright *picture, int64_t first, int64_t count, float *rgb,
			struct smalti_error *error);
/* Also after a failed open. */
void smalti_upright_close(struct smalti_upright *picture);

#endif
