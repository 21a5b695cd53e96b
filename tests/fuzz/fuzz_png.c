/* SPDX-License-Identifier: Apache-2.0 */
#include "io/png.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Whatever the file, it is refused, or its pixels and its text are read within the limits. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0)
		fd = memfd_create("png", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	struct smalti_error text = SMALTI_NO_ERROR, picture = SMALTI_NO_ERROR;
	char *value;
	int status = smalti_png_read_text(path, "prompt", &value, &text);
	if ((status == 0) != (text.code == SMALTI_OK) || (status && value))
		abort();
	free(value);
	int64_t width, height;
	uint8_t *pixels = smalti_png_read_rgb8(path, 1 << 16, &width, &height, &picture);
	if (!pixels != (picture.code != SMALTI_OK) || (pixels && width * height > 1 << 16))
		abort();
	free(pixels);
	return 0;
}
