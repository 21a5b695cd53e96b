/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/image.h"
#include "jobs/bins.h"

/* Makes the VAE encoder's input of an image file: decoded, turned, brought to a size that a model is trained
 * at, in [-1, 1], row by row. Whole images are held only where image.h and turned.h say so. */
struct smalti_input_image;

enum smalti_input_fit {
	SMALTI_FIT_COVER,   /* resized in proportion, the excess cut off: as the reference trains (6.6) */
	SMALTI_FIT_STRETCH, /* resized straight to the bin: as the reference extracts (6.4) */
	SMALTI_FIT_CROP,    /* not resized: cropped about the centre to multiples of `multiple` */
};

struct smalti_input_options {
	enum smalti_input_fit fit;
	int64_t image_size;                /* bins of the training's table: 128, 256, 512, 1024, 2048, 2880 */
	int64_t multiple;                  /* of SMALTI_FIT_CROP */
	bool stored_orientation;           /* EXIF's orientation is ignored, as the reference does */
	struct smalti_image_limits limits; /* zeros: 2^28 pixels, 2^30 bytes held */
};

/* The longest side of an image, unless it is only cropped. */
enum { SMALTI_INPUT_SIDE_MAX = 1 << 17 };

struct smalti_input_info {
	int64_t original_height, original_width; /* turned */
	struct smalti_bin bin;                   /* zeros if the image is only cropped */
	int64_t height, width;                   /* of the rows that are made */
};

/* Opens the file's bytes, which have to stay until the close; or, with `data` NULL, the file `name`. Reads no
 * pixels yet. Fails as smalti_image_open(); EUNSUPPORTED for a size that cannot be fitted; EINVAL for a
 * resolution without bins. */
struct smalti_input_image *smalti_input_image_open(const char *name, const void *data, int64_t bytes,
						   const struct smalti_input_options *options,
						   struct smalti_error *error);
const struct smalti_input_info *smalti_input_image_info(const struct smalti_input_image *image);

/* Makes rows first … first + count − 1, [count, width, 3] of RGB; each call begins where the last ended. With
 * the last row the rest of the file is checked. After a failure only the close is allowed. */
int smalti_input_image_rows(struct smalti_input_image *image, int64_t first, int64_t count, float *rgb,
			    struct smalti_error *error);

void smalti_input_image_close(struct smalti_input_image *image); /* NULL is fine */
