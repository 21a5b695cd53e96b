/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "image/png_reader.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whatever the file, it is refused, or its text is read. */
FUZZER(data, size)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0)
		fd = memfd_create("png", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	struct smalti_error error = SMALTI_NO_ERROR;
	char *value;
	int status = smalti_png_read_text(path, "prompt", &value, &error);
	if ((status == 0) != (error.code == SMALTI_OK) || (status && value))
		abort();
	free(value);
	return 0;
}
