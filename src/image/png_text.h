/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IMAGE_PNG_TEXT_H
#define SMALTI_IMAGE_PNG_TEXT_H

#include "base/error.h"

/* The metadata under `key` that stands before the image's data in a PNG file: *value is to be freed, or
 * NULL when there is none. The file may be anything. */
int smalti_png_read_text(const char *path, const char *key, char **value, struct smalti_error *error);

#endif
