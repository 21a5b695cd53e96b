/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/observer.h"
#include "rt/rates.h"

#include <stdatomic.h>

#include <starpu.h>

/* The times of a codelet's tasks, for policies that use them. They are StarPU's measurements of tasks with
 * the same key on such a worker. Without a measurement it is an estimate, so that no task has to run where it
 * is slow just to be measured. */
struct smalti_task_times {
	struct starpu_perfmodel model; /* the codelet's */
	struct starpu_perfmodel history;
	char symbol[64];   /* of the history, which is kept in a file */
	atomic_bool asked; /* whether any code asks for times */
	/* The ratio of recent times to the speeds of a memory's workers; 0: no task has run there. */
	_Atomic double ratios[STARPU_MAXNODES];
};

/* Opens the times; `footprint` gives the key of a task. */
void smalti_task_times_open(struct smalti_task_times *times, const char *name,
			    uint32_t (*footprint)(struct starpu_task *task));
/* Learns from the tasks of a session, or simulates them (rt/simulation.h). */
extern const struct smalti_observer smalti_task_times_observer;
/* Returns the measured seconds of similar tasks; NAN: too few. */
double smalti_task_times_measured(struct starpu_task *task, int worker);
/* Adds what a worker has run, from the history's file; without tasks that ran once, which may have compiled
 * kernels. `kind` is the codelet's number, for the keys. */
int smalti_task_times_list(const struct smalti_task_times *times, uint64_t kind, int worker,
			   struct smalti_task_list *list, struct smalti_error *error);
