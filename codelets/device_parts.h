/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/devices.h"
#include "kernels/device/parts.h"

/* What the devices' forms of operations are made of. */

/* Scratch of one operation, each of another use. */
enum smalti_device_slot {
	SMALTI_DEVICE_X,
	SMALTI_DEVICE_WEIGHT,
	SMALTI_DEVICE_PRODUCT,
	SMALTI_DEVICE_FACTOR,
	SMALTI_DEVICE_COEFFICIENTS,
	SMALTI_DEVICE_GRADIENT,
	SMALTI_DEVICE_ROUNDED,
	SMALTI_DEVICE_ROWS
};

#define SMALTI_DEVICE_COUNT(buffers) ((int)(sizeof(buffers) / sizeof((buffers)[0])))

/* Runs a kernel with a thread for each of `elements`. */
#define smalti_device_elements(device, kernel, elements, buffers, arguments, error)                          \
	smalti_device_groups(device, kernel,                                                                 \
			     ((elements) + SMALTI_DEVICE_THREADS - 1) / SMALTI_DEVICE_THREADS, buffers,      \
			     arguments, error)
/* Runs one with so many groups. */
#define smalti_device_groups(device, kernel, groups, buffers, arguments, error)                              \
	smalti_device_launch(device, &(const struct smalti_launch){kernel, (groups), SMALTI_DEVICE_THREADS}, \
			     buffers, SMALTI_DEVICE_COUNT(buffers), arguments, sizeof(*(arguments)), error)

/* A matrix, of which element (row, column) is first + row·stride + column. */
struct smalti_device_matrix {
	const struct smalti_device_memory *memory;
	int64_t first, stride;
	enum smalti_dtype dtype;
};

/* What products take: x itself where its dtype is `compute` and the device multiplies that, else a copy in
 * scratch; `result` is set here. 0, or -1 with an error. */
int smalti_device_operand(struct smalti_device *device, enum smalti_device_slot slot,
			  const struct smalti_device_memory *x, const struct operand_arguments *a,
			  struct smalti_device_matrix *matrix, struct smalti_error *error);

/* What the kernel takes, in its order. */
struct smalti_attend_buffers {
	const struct smalti_device_memory *q, *kv[SMALTI_MANY];
	const struct smalti_device_memory *values; /* NULL: those of all blocks are in kv */
	const struct smalti_device_memory *bias, *state, *y, *starts, *lse;
};

/* Attention of heads of any width: members `first_column` and `columns` are set here. */
int smalti_device_attend(struct smalti_device *device, const struct attend_arguments *arguments,
			 const struct smalti_attend_buffers *buffers, struct smalti_error *error);
