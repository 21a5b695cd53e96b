/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "image/image.h"

/* A whole image in memory, as a viewer shows it: turned by its EXIF orientation. */
struct smalti_picture {
	unsigned char *pixels; /* [height, width, 3], RGB; of a grey one [height, width] */
	int64_t width, height;
};

/* Read a file, or one that is in memory, whose name is for messages, of so many pixels at most. */
int smalti_picture_read(struct smalti_picture *picture, const char *path, int64_t pixels,
			struct smalti_error *error);
int smalti_picture_read_memory(struct smalti_picture *picture, const char *name, const void *data,
			       int64_t bytes, int64_t pixels, struct smalti_error *error);
/* Makes it grey, as Pillow's convert("L"). */
void smalti_picture_make_grey(struct smalti_picture *picture);
void smalti_picture_free(struct smalti_picture *picture); /* makes it empty */
