/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/observer.h"
#include "rt/rates.h"

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
/* Learns from the tasks of a session, or simulates them (rt/simulation.h). */
extern const struct smalti_observer smalti_task_times_observer;
/* The seconds that were measured of its like; NAN: not enough. */
double smalti_task_times_measured(struct starpu_task *task, int worker);
/* Adds what a worker has run, as the history's file tells; not what ran once, which may have compiled
 * kernels. `kind` is the codelet's, for the keys. */
int smalti_task_times_list(const struct smalti_task_times *times, uint64_t kind, int worker,
			   struct smalti_task_list *list, struct smalti_error *error);
