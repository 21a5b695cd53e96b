/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IMAGE_UPRIGHT_H
#define SMALTI_IMAGE_UPRIGHT_H

#include "image/image.h"

#include <stdbool.h>

/* An image as a viewer shows it, turned by its EXIF orientation. Rows pass by, but an image that has to be
 * turned is held whole. */
struct smalti_upright {
	int64_t height, width;
	const char *name;                  /* the caller's */
	struct smalti_image_reader *image; /* the caller's */
	int orientation;                   /* that is undone: 1 to 8 */
	int64_t most_bytes;                /* that may be held */
	uint8_t *held;                     /* the stored upright, or one of its rows */
};

/* With `stored` as it is stored, the orientation ignored. Reads no pixels. */
void smalti_upright_open(struct smalti_upright *upright, const char *name, struct smalti_image_reader *image,
			 bool stored, int64_t most_bytes);
/* Rows first … first + count − 1, [count, width, 3], each call beginning where the last ended. */
int smalti_upright_rows(struct smalti_upright *upright, int64_t first, int64_t count, uint8_t *rows,
			struct smalti_error *error);
void smalti_upright_close(struct smalti_upright *upright); /* not the image */

#endif
