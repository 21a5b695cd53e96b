/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/op.h"
#include "rt/rates.h"
#include "rt/task_group.h"
#include "rt/tile.h"

/* Inserts a task; `tiles` holds the buffers in the op's order. Dependencies follow from the order of
 * insertion. Failures (no worker, no memory) break the task group, which inserts nothing then. Waits when
 * very many tasks are inserted and not run: never insert from a task. */
void smalti_task_insert(struct smalti_task_group *task_group, const struct smalti_op *op,
			struct smalti_tile *const *tiles, const void *arguments);

/* Operations that may become one task. */
struct smalti_fusion {
	const char *name; /* of the task; static */
	enum smalti_grain grain;
	double flops; /* of all that goes with them, a band's way through a layer */
	int place;    /* where they run; SMALTI_ANYWHERE: perhaps on the fastest worker */
};

/* What the task group inserts from here to the end becomes one task, if its grain is that of the fusion or
 * coarser, or automatic with operations that the place does in a few milliseconds. They then run one after
 * the other on one worker, and tiles that are made and released in between stay there: the results are the
 * same. Where an operation's place is another one than that of those before, another task begins. Fusions may
 * lie within each other: the outermost counts. */
void smalti_fuse_begin(struct smalti_task_group *task_group, const struct smalti_fusion *fusion);
void smalti_fuse_end(struct smalti_task_group *task_group);

/* The entry of a task in its op's performance model; bit i of `present`: buffer i is given. */
uint32_t smalti_task_key(const struct smalti_op *op, const void *arguments, uint32_t present);

/* Before starpu_init: the codelets and performance models of all ops; `devices`: whether there may be any. */
struct smalti_codelet *smalti_task_open(bool devices, struct smalti_error *error);
/* Adds what a worker has run of the transformer's kind, as the files of the performance models tell. */
int smalti_task_list(const struct smalti_codelet *codelets, int worker, struct smalti_task_list *list,
		     struct smalti_error *error);
/* Before starpu_shutdown: what was measured is not written. */
void smalti_task_drop_measurements(struct smalti_codelet *codelets);
