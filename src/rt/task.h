/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_RT_TASK_H
#define SMALTI_RT_TASK_H

#include "rt/op.h"
#include "rt/task_group.h"
#include "rt/tile.h"

/* Inserts a task; `tiles` holds the buffers in the op's order. Dependencies follow from the order of
 * insertion. Failures (no worker, no memory) break the task group, which inserts nothing then. Waits when
 * very many tasks are inserted and not run: never insert from a task. */
void smalti_task_insert(struct smalti_task_group *task_group, const struct smalti_op *op,
			struct smalti_tile *const *tiles, const void *arguments);

/* The entry of a task in its op's performance model; bit i of `present`: buffer i is given. */
uint32_t smalti_task_key(const struct smalti_op *op, const void *arguments, uint32_t present);

/* Before starpu_init: the codelets and performance models of all ops; `devices`: whether there may be any. */
struct smalti_codelet *smalti_task_open(bool devices, struct smalti_error *error);
/* Before starpu_shutdown: what was measured is not written. */
void smalti_task_drop_measurements(struct smalti_codelet *codelets);
/* After starpu_shutdown. NULL is allowed. */
void smalti_task_close(struct smalti_codelet *codelets);

#endif
