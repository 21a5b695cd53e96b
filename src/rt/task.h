/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"
#include "rt/rates.h"
#include "rt/task_group.h"
#include "rt/tile.h"

/* Inserts a task; `tiles` holds the buffers in the op's order. Dependencies follow from the order of
 * insertion. Failures (no worker, no memory) break the task group, which inserts nothing then. Waits while
 * very many tasks are inserted and not run: never insert from a task. */
void smalti_task_insert(struct smalti_task_group *task_group, const struct smalti_op *op,
			struct smalti_tile *const *tiles, const void *arguments);

/* Operations that may become one task. */
struct smalti_fusion {
	const char *name; /* of the task; static */
	enum smalti_grain grain;
	double flops; /* of all operations that belong together, a band in a layer */
	int place;    /* where they run; SMALTI_ANYWHERE: perhaps on the fastest worker */
};

/* Makes one task of what the task group inserts from here to the end, if its grain is the fusion's or
 * coarser, or automatic with operations that take the place a few milliseconds. The operations run one after
 * the other on one worker, and tiles that are made and released in between stay there. The results are the
 * same. Where an operation has another place than those before, a new task begins. Fusions may be nested: the
 * outermost counts. */
void smalti_fuse_begin(struct smalti_task_group *task_group, const struct smalti_fusion *fusion);
void smalti_fuse_end(struct smalti_task_group *task_group);

/* Returns the key of a task in its op's performance model; bit i of `present`: buffer i is given. */
uint32_t smalti_task_key(const struct smalti_op *op, const void *arguments, uint32_t present);

/* Makes the codelets and performance models of all ops, before starpu_init(). `devices`: there may be
 * devices. */
struct smalti_codelet *smalti_task_open(bool devices, struct smalti_error *error);
/* Adds the transformer's tasks that a worker has run, from the files of the performance models. */
int smalti_task_list(const struct smalti_codelet *codelets, int worker, struct smalti_task_list *list,
		     struct smalti_error *error);
/* Discards measurements before starpu_shutdown(). */
void smalti_task_drop_measurements(struct smalti_codelet *codelets);
