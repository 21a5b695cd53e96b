/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/arguments.h"
#include "rt/task_group.h"
#include "rt/tile.h"

/* struct NAME_buffers: the tiles that a graph hands to smalti_insert_NAME(). */
#define INPUT(b)  struct smalti_tile *b;
#define OUTPUT(b) struct smalti_tile *b;
#define CODELET(name, work, list, members, flops, bytes)                                                     \
	struct name##_buffers {                                                                              \
		list                                                                                         \
	};
#include "codelets/codelets.def"

/* struct NAME_data: the buffers as pointers, for smalti_cpu_NAME(). */
#define INPUT(b)  const void *b;
#define OUTPUT(b) void *b;
#define CODELET(name, work, list, members, flops, bytes)                                                     \
	struct name##_data {                                                                                 \
		list                                                                                         \
	};                                                                                                   \
	int smalti_cpu_##name(const struct name##_data *data, const struct name##_arguments *arguments,      \
			      struct smalti_error *error);                                                   \
	void smalti_insert_##name(struct smalti_task_group *task_group,                                      \
				  const struct name##_buffers *buffers,                                      \
				  const struct name##_arguments *arguments);
#include "codelets/codelets.def"

/* Inserts an operation in one expression: smalti_insert(matmul, task_group, (.x = a, .weight = w, .y = b),
 * .rows = n, …). */
#define SMALTI_LIST_(...) __VA_ARGS__
#define smalti_insert(op, task_group, buffers, ...)                                                          \
	smalti_insert_##op((task_group), &(const struct op##_buffers){SMALTI_LIST_ buffers},                 \
			   &(const struct op##_arguments){__VA_ARGS__})

/* The rows of smalti_ops[] (rt/op.h). */
enum smalti_op_number {
#define CODELET(name, work, list, members, flops, bytes) SMALTI_OP_##name,
#include "codelets/codelets.def"
	SMALTI_OPS
};
