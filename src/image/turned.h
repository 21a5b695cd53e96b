/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/image.h"

/* An image as a viewer shows it, turned by its EXIF orientation. Rows pass by, but an image whose rows are
 * not the stored ones in their order is held whole. */
struct smalti_turned_image {
	int64_t height, width;
	struct smalti_image_reader *image; /* the caller's */
	int orientation;                   /* that is undone: 1 to 8; 1: rows come as they are stored */
	uint8_t *held;                     /* the stored image, or one of its rows */
};

/* Reads no pixels. */
void smalti_turned_open(struct smalti_turned_image *turned, struct smalti_image_reader *image,
			int orientation);
/* Reads rows first … first + count − 1 of the turned image, [count, width, 3]; each call begins where the
 * last ended. */
int smalti_turned_rows(void *turned, int64_t first, int64_t count, uint8_t *rows, struct smalti_error *error);
void smalti_turned_close(struct smalti_turned_image *turned); /* not the image */
