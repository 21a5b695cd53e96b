/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

#include <starpu.h>

/* What the tasks of a codelet take, for policies that go by it: what StarPU has measured of tasks with the
 * same key on such a worker, and as long as that is nothing, an estimate, so that no task has to run where it
 * is slow for its time to be known. */
struct smalti_task_times {
	struct starpu_perfmodel model; /* the codelet's */
	struct starpu_perfmodel history;
	char symbol[64];   /* of the history, which is kept in a file */
	atomic_bool asked; /* whether anybody wants to know */
	/* To what the speeds of a memory's workers say, of late; 0: none has run there. */
	_Atomic double ratios[STARPU_MAXNODES];
};

/* `footprint` gives the key of a task. */
void smalti_task_times_open(struct smalti_task_times *times, const char *name,
			    uint32_t (*footprint)(struct starpu_task *task));
/* When it has run there, for so long. */
void smalti_task_times_took(struct starpu_task *task, int worker, double seconds);
/* The seconds that were measured of its like; NAN: not enough. */
double smalti_task_times_measured(struct starpu_task *task, int worker);
/* Adds the operations of tasks that have run on all of these workers, as the history's file tells, and the
 * seconds that as many take on each; not of what ran once, which may have compiled kernels. */
void smalti_task_times_compare(const struct smalti_task_times *times, const int *workers, int count,
			       double *flops, double *seconds);
