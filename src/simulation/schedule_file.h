/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* A schedule that was made before a run: which worker runs each task, and in which order. Its file is JSON
 * Lines. The first line has the workers, the others have the tasks in the order in which they begin:
 *
 *     {"format":"smalti-schedule","version":1,"tasks":2,"workers":["CPU 0","CPU 1"]}
 *     {"task":1,"name":"linear","worker":0}
 *     {"task":0,"name":"norm","worker":1}
 *
 * Tasks have the numbers of their insertion, from 0 on, as in a trace. */
struct smalti_planned_task {
	char *name;
	int worker;
	int64_t turn;     /* how many tasks its worker runs before it */
	int64_t position; /* how many tasks begin before it */
};

struct smalti_planned_schedule {
	int64_t count;
	struct smalti_planned_task *tasks; /* by their numbers */
	int64_t *sequence; /* the numbers of the first `added` tasks, in the order of the file */
	int64_t added;
	int worker_count;
	struct smalti_planned_worker {
		char *name;
		int64_t tasks; /* that it has so far */
	} * workers;
};

/* Makes a schedule with room for the tasks and the names of workers, all unset. */
struct smalti_planned_schedule *smalti_planned_new(int64_t tasks, int workers, struct smalti_error *error);
/* Makes the task the next one of this worker. -1 with SMALTI_EFORMAT: there is no such task or worker, or the
 * task has a worker already. */
int smalti_planned_add(struct smalti_planned_schedule *schedule, int64_t task, const char *name,
		       int64_t worker, struct smalti_error *error);

/* Reads a file, in which every task is there once; NULL with SMALTI_EIO, SMALTI_EFORMAT. */
struct smalti_planned_schedule *smalti_planned_read(const char *path, struct smalti_error *error);
int smalti_planned_write(const struct smalti_planned_schedule *schedule, const char *path,
			 struct smalti_error *error);
void smalti_planned_free(struct smalti_planned_schedule *schedule);
