/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/devices.h"
#include "kernels/device/parts.h"

/* Parts of the devices' forms of operations. */

/* The scratch slots of an operation, each for one use. */
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

/* Runs a kernel with a thread for each of `elements` elements. */
#define smalti_device_elements(device, kernel, elements, buffers, arguments, error)                          \
	smalti_device_groups(device, kernel,                                                                 \
			     ((elements) + SMALTI_DEVICE_THREADS - 1) / SMALTI_DEVICE_THREADS, buffers,      \
			     arguments, error)
/* Runs a kernel with `groups` groups. */
#define smalti_device_groups(device, kernel, groups, buffers, arguments, error)                              \
	smalti_device_launch(device, &(const struct smalti_launch){kernel, (groups), SMALTI_DEVICE_THREADS}, \
			     buffers, SMALTI_DEVICE_COUNT(buffers), arguments, sizeof(*(arguments)), error)

/* Values that a thread takes together where rows are multiples of it. */
enum { SMALTI_EIGHT = 8 };

/* Selects the kernel of a name and a dtype. */
#define SMALTI_DEVICE_FORM(name, dtype)                                                                      \
	((const char *const[]){                                                                              \
	    [SMALTI_F32] = name "_f32", [SMALTI_F16] = name "_f16", [SMALTI_BF16] = name "_bf16"}[dtype])

/* Kernels with equal results on rows of `columns` values, contiguous in memory. */
struct smalti_device_kernels {
	const char *general; /* a thread for each value */
	const char *eights;  /* a thread for each eight values; NULL: there is none */
	int64_t rows, columns;
};
/* Runs the kernel in eights if the rows allow it, which are counted in 32 bits, else the general one. */
int smalti_device_launch_values(struct smalti_device *device, const struct smalti_device_kernels *kernels,
				const struct smalti_device_memory *const *buffers, int count,
				const void *arguments, size_t argument_bytes, struct smalti_error *error);
#define smalti_device_values(device, general, eights, rows, columns, buffers, arguments, error)              \
	smalti_device_launch_values(                                                                         \
	    device, &(const struct smalti_device_kernels){general, eights, rows, columns}, buffers,          \
	    SMALTI_DEVICE_COUNT(buffers), arguments, sizeof(*(arguments)), error)

/* A matrix: element (row, column) is at first + row·stride + column. */
struct smalti_device_matrix {
	const struct smalti_device_memory *memory;
	int64_t first, stride;
	enum smalti_dtype dtype;
};

/* Prepares an operand of products: x itself if its dtype is `compute` and the device multiplies that, else a
 * copy in scratch; it sets `result`. 0, or -1 with an error. */
int smalti_device_operand(struct smalti_device *device, enum smalti_device_slot slot,
			  const struct smalti_device_memory *x, const struct operand_arguments *a,
			  struct smalti_device_matrix *matrix, struct smalti_error *error);

/* The rows of x rounded to rows of int8, in the slots X and ROUNDED. */
struct smalti_device_integers {
	const struct smalti_device_memory *rows, *scales;
};
/* Rounds x. */
int smalti_device_round_rows(struct smalti_device *device, const struct integer_product_arguments *a,
			     const struct smalti_device_memory *x, struct smalti_device_integers *rounded,
			     struct smalti_error *error);
/* Multiplies it by rows of int8; the sums are exact. */
int smalti_device_integer_product(struct smalti_device *device, const struct integer_product_arguments *a,
				  const struct smalti_device_integers *x,
				  const struct smalti_device_memory *weight,
				  const struct smalti_device_memory *z, struct smalti_error *error);

/* Computes y from a product z in f32, with the bias and the epilogue. */
int smalti_device_epilogue(struct smalti_device *device, const struct matmul_arguments *a,
			   const struct smalti_device_memory *z, const struct smalti_device_memory *bias,
			   const struct smalti_device_memory *gate, const struct smalti_device_memory *y,
			   struct smalti_error *error);

/* Tell whether products compute attention of one wide head faster than the kernel, and do so. @{ */
bool smalti_device_attends_wide(struct smalti_device *device, const struct attention_memories *data,
				const struct attention_arguments *a);
int smalti_device_attend_wide(struct smalti_device *device, const struct attention_memories *data,
			      const struct attention_arguments *a, struct smalti_error *error);
/* @} */

/* The kernel's buffers, in its order. */
struct smalti_attend_buffers {
	const struct smalti_device_memory *q, *kv[SMALTI_MANY];
	const struct smalti_device_memory *bias, *state, *y, *starts, *lse;
};

/* Attends with heads of any width; it sets the members `first_column` and `columns`. */
int smalti_device_attend(struct smalti_device *device, const struct attend_arguments *arguments,
			 const struct smalti_attend_buffers *buffers, struct smalti_error *error);
