/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_RT_TASK_H
#define SMALTI_RT_TASK_H

#include "rt/scope.h"
#include "rt/tile.h"

#include <stddef.h>

/* How a task touches a buffer. */
enum smalti_access { SMALTI_READ, SMALTI_WRITE, SMALTI_UPDATE };

/* A codelet's buffer, or `count` of the same kind; an optional one may be absent (NULL). */
struct smalti_buffer {
	const char *name;
	enum smalti_access access;
	bool optional;
	int count;
};

enum { SMALTI_MAX_BUFFERS = 32, SMALTI_MAX_ARGUMENTS = 384 };

/* An operation: what codelets.def says of it in one row. `buffers` are in the order of the pointers
 * that `cpu` is given (NULL for an absent one). */
struct smalti_op {
	const char *name;
	const struct smalti_buffer *buffers;
	int buffer_kinds;
	size_t arguments_size;
	/* Extends `key` by the arguments that a task's time depends on. */
	uint32_t (*key)(const void *arguments, uint32_t key);
	double (*flops)(const void *arguments);
	double (*bytes)(const void *arguments); /* that have to move at least once */
	int (*cpu)(const void *data, const void *arguments, struct smalti_error *error);
};

/* Inserts a task; `tiles` holds the buffers in the op's order. Dependencies follow from the order of
 * insertion. Failures (no worker, no memory) go to the scope. A failed scope inserts nothing. Waits when very
 * many tasks are inserted and not run: never insert from a task. */
void smalti_task_insert(struct smalti_scope *scope, const struct smalti_op *op,
			struct smalti_tile *const *tiles, const void *arguments);

/* The entry of a task in its op's performance model; bit i of `present`: buffer i is given. */
uint32_t smalti_task_key(const struct smalti_op *op, const void *arguments, uint32_t present);

/* Seconds that this worker has been in tasks, since the program began. */
double smalti_task_busy(int worker);

/* Before starpu_shutdown: what was measured is not written. */
void smalti_task_drop_measurements(void);

/* After starpu_shutdown: the next session starts with fresh codelets and performance models. */
void smalti_task_forget_codelets(void);

#endif
