/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/image.h"

/* At most 2^20 pixels. */
extern const struct smalti_image_limits images_roomy;

/* Reads the pixels of any image that image/image.h reads, [height, width, 3], in bands of `band` rows; NULL
 * with an error. Free with free(). */
uint8_t *image_read(const char *path, const struct smalti_image_limits *limits, int64_t band,
		    struct smalti_image_info *info, struct smalti_error *error);
/* Reads an image at once, with roomy limits. */
uint8_t *image_read_whole(const char *path, int64_t *width, int64_t *height, struct smalti_error *error);

/* Returns a path under tests/data/image, as test_data(). */
const char *image_data(const char *name);
/* Writes a PNG that claims its extents but has no pixels, as test_write(). */
const char *image_claim(uint64_t width, uint64_t height, int interlace);
