/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "simulation/schedule_file.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Whatever the bytes, a schedule that is read has each task once, at a worker that there is, in its turn. */
static void check(const struct smalti_planned_schedule *schedule)
{
	int64_t tasks = 0;
	if (schedule->added != schedule->count)
		abort();
	for (int i = 0; i < schedule->worker_count; i++)
		tasks += schedule->workers[i].tasks;
	if (tasks != schedule->count)
		abort();
	for (int64_t i = 0; i < schedule->count; i++) {
		const struct smalti_planned_task *task = &schedule->tasks[i];
		if (!task->name || task->worker < 0 || task->worker >= schedule->worker_count ||
		    task->turn < 0 || task->turn >= schedule->workers[task->worker].tasks ||
		    schedule->sequence[task->position] != i)
			abort();
	}
}

FUZZER(data, size)
{
	static int fd = -1;
	static char path[64];
	if (fd < 0)
		fd = memfd_create("schedule", 0);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (ftruncate(fd, 0) || pwrite(fd, data, size, 0) != (ssize_t)size)
		abort();
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_planned_schedule *schedule = smalti_planned_read(path, &error);
	if (!schedule != (error.code != SMALTI_OK))
		abort();
	if (schedule)
		check(schedule);
	smalti_planned_free(schedule);
	return 0;
}
