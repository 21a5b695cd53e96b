/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "store/run_read.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whatever the bytes, a log's points are in order and its counts within what they are for. */
FUZZER(data, size)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_run run = {.file = NULL};
	const int file = memfd_create("log", MFD_CLOEXEC);
	if (file < 0 || write(file, data, size) != (ssize_t)size || lseek(file, 0, SEEK_SET))
		abort();
	const int status = smalti_run_read(file, &run, &error);
	if (status < 0)
		abort();
	for (int64_t i = 1; i < run.count; i++)
		if (!(run.points[i].time >= run.points[i - 1].time))
			abort();
	for (int64_t i = 0; i < run.count * run.worker_count; i++)
		if (!(run.busy[i] >= 0))
			abort();
	smalti_run_free(&run);
	close(file);
	return 0;
}
