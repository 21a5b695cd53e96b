/* SPDX-License-Identifier: Apache-2.0 */
#include "images.h"

#include "harness.h"
#include "png_chunk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct smalti_image_limits images_roomy = {.pixels = 1 << 20, .bytes = 16 << 20};

uint8_t *image_read(const char *path, const struct smalti_image_limits *limits, int64_t band,
		    struct smalti_image_info *info, struct smalti_error *error)
{
	struct smalti_image_reader *image = smalti_image_open(path, limits, error);
	if (!image)
		return NULL;
	*info = *smalti_image_info(image);
	uint8_t *pixels = malloc((size_t)(info->width * info->height * 3));
	int status = 0;
	for (int64_t y = 0; y < info->height && !status; y += band) {
		const int64_t count = info->height - y < band ? info->height - y : band;
		/* memory of just the band's size, so that a sanitizer sees what is written beyond it */
		uint8_t *rows = malloc((size_t)(count * info->width * 3));
		status = smalti_image_read_rows(image, y, count, rows, error);
		if (!status)
			memcpy(pixels + y * info->width * 3, rows, (size_t)(count * info->width * 3));
		free(rows);
	}
	smalti_image_close(image);
	if (!status)
		return pixels;
	free(pixels);
	return NULL;
}

const char *image_data(const char *name)
{
	char path[256];
	snprintf(path, sizeof(path), "image/%s", name);
	return test_data(path);
}

uint8_t *image_read_whole(const char *path, int64_t *width, int64_t *height, struct smalti_error *error)
{
	struct smalti_image_info info;
	uint8_t *pixels = image_read(path, &images_roomy, INT32_MAX, &info, error);
	if (pixels) {
		*width = info.width;
		*height = info.height;
	}
	return pixels;
}

const char *image_claim(uint64_t width, uint64_t height, int interlace)
{
	uint8_t file[PNG_CLAIM_BYTES];
	png_put_claim(file, width, height, interlace);
	return test_write("claim", file, sizeof(file));
}
