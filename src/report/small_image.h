/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/resizer.h"

/* Copies of images that pages contain. */
enum { SMALTI_SMALL_SIDE = 256 };

/* Returns a PNG of the image at `path` in base64, its longer side `side` pixels at most, which is up to
 * SMALTI_SMALL_SIDE; for free(). NULL with an error. */
char *smalti_small_image(const char *path, int64_t side, struct smalti_fit *fit, struct smalti_error *error);

/* Returns DIRECTORY/NAME, if it is there and neither `..` nor a link leads out of the directory: names from
 * outside bring no foreign file onto a page that is given away. For free(); NULL with an error. */
char *smalti_path_beneath(const char *directory, const char *name, struct smalti_error *error);
