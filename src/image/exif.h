/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_IMAGE_EXIF_H
#define SMALTI_IMAGE_EXIF_H

#include <stdint.h>

/* The orientation, 1 to 8, that EXIF data (a TIFF header and what follows, with or without "Exif\0\0" before
 * it) gives to an image; 0 when it gives none, or is something else, or damaged. */
int smalti_exif_orientation(const uint8_t *bytes, int64_t size);

#endif
