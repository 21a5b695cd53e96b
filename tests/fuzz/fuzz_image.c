/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "image/image.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PIXELS = 1 << 16, BAND = 7 };

/* In bands, each in memory of just its size. */
static int read_all(struct smalti_image_reader *image, struct smalti_error *error)
{
	const struct smalti_image_info *info = smalti_image_info(image);
	if (info->width < 1 || info->height < 1 || info->width * info->height > PIXELS ||
	    info->orientation < 1 || info->orientation > 8)
		abort();
	int status = 0;
	for (int64_t y = 0; y < info->height && !status; y += BAND) {
		const int64_t count = info->height - y < BAND ? info->height - y : BAND;
		uint8_t *rows = malloc((size_t)(count * info->width * 3));
		status = smalti_image_read_rows(image, y, count, rows, error);
		free(rows);
	}
	return status;
}

/* Whatever the file, it is refused, or its pixels are read within the limits. */
FUZZER(data, size)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0)
		fd = memfd_create("image", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	const struct smalti_image_limits limits = {.pixels = PIXELS, .bytes = 1 << 20};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_image_reader *image = smalti_image_open(path, &limits, &error);
	const int status = image ? read_all(image, &error) : -1;
	if ((status == 0) != (error.code == SMALTI_OK))
		abort();
	smalti_image_close(image);
	return 0;
}
