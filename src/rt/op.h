/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype_enum.h"
#include "base/work.h"
#include "devices/device.h"

/* How a task accesses a buffer. SMALTI_WAIT orders it like a read, but the tile stays where it is. */
enum smalti_access { SMALTI_READ, SMALTI_WRITE, SMALTI_UPDATE, SMALTI_WRITE_OR_UPDATE, SMALTI_WAIT };

/* A buffer of an operation, or `count` buffers of one kind; an optional one may be absent (NULL). */
struct smalti_buffer {
	const char *name;
	enum smalti_access access;
	bool optional;
	int count;
};

enum { SMALTI_MAX_ARGUMENTS = 384 };

/* The kinds of memory for which a tile may have a form: main memory, and that of any device. */
enum smalti_device_kind { SMALTI_DEVICE_CPU, SMALTI_DEVICE_GPU, SMALTI_DEVICE_KINDS };

/* A device's function of an operation, with as many memories as the operation has buffers (NULL: absent). */
struct smalti_device;
struct smalti_device_memory;
typedef int (*smalti_device_run)(struct smalti_device *device,
				 const struct smalti_device_memory *const *memories, const void *arguments,
				 struct smalti_error *error);

/* An operation: one row of codelets.def. `buffers` are in the order of the pointers that its function gets
 * (NULL for an absent one). */
struct smalti_op {
	const char *name;
	enum smalti_work work;
	const struct smalti_buffer *buffers;
	int buffer_kinds;
	size_t arguments_size;
	/* Tells whether buffers of a kind with SMALTI_WRITE_OR_UPDATE are updated. */
	bool (*updates)(const void *arguments, int kind);
	/* Extends `key` by the arguments that a task's time depends on. */
	uint32_t (*key)(const void *arguments, uint32_t key);
	uint32_t (*value)(const void *arguments, uint32_t hash); /* hashes all arguments but pointers */
	enum smalti_dtype (*dtype)(const void *arguments);       /* of its products or conversion, else f32 */
	double (*flops)(const void *arguments);
	double (*bytes)(const void *arguments); /* that must move at least once */
	int (*run)(const void *data, const void *arguments, struct smalti_error *error); /* on a CPU */
	const smalti_device_run *device; /* read it by smalti_op_device() */
};

/* The table of operations, which codelets/table.c sets before main(). */
extern const struct smalti_op *smalti_ops;
extern int smalti_op_count;
/* Returns the work of the operation with this name; SMALTI_VALUES for others, such as a task of several. */
enum smalti_work smalti_op_work(const char *name);

/* Refuses that the buffer is missing, unless it is optional: -1 with SMALTI_EINVAL. */
int smalti_op_check_missing(const struct smalti_op *op, const struct smalti_buffer *buffer,
			    struct smalti_error *error);

/* Returns how a task with these arguments accesses the op's buffers of one kind: never
 * SMALTI_WRITE_OR_UPDATE. */
static inline enum smalti_access smalti_op_access(const struct smalti_op *op, int kind, const void *arguments)
{
	const enum smalti_access access = op->buffers[kind].access;
	if (access != SMALTI_WRITE_OR_UPDATE)
		return access;
	return op->updates(arguments, kind) ? SMALTI_UPDATE : SMALTI_WRITE;
}

/* Returns the device's function of an operation. NULL: it runs only on CPUs. */
static inline smalti_device_run smalti_op_device(const struct smalti_op *op)
{
	return *op->device;
}
