/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/device.h"

#include <starpu.h>

/* OpenCL's form of a device, for opencl*.c. */
struct smalti_device {
	cl_context context;
	cl_device_id id;
	cl_command_queue queue;
	unsigned memory_node;
	cl_program program;
	cl_kernel *kernels;
	char (*names)[64]; /* of the kernels */
	cl_uint kernel_count;
	bool takes_turns;
	struct smalti_device_memory scratch[SMALTI_DEVICE_SCRATCH];
	struct smalti_device_local *locals; /* opencl_locals.c */
	int local_count;
};

/* Around whatever runs a kernel: PoCL's devices take turns, since 3.1 ends the program when two of them
 * launch a kernel for the first time at once: its cache of libraries then has it twice and releases the first
 * of them twice. With its `basic` driver the kernel has run when the launch returns. */
void smalti_device_begin(const struct smalti_device *device);
void smalti_device_end(const struct smalti_device *device);

/* Memory that StarPU counts but does not manage. Releasing what is empty does nothing. @{ */
int smalti_device_allocate(struct smalti_device *device, struct smalti_device_memory *memory, int64_t bytes,
			   struct smalti_error *error);
void smalti_device_release(struct smalti_device *device, struct smalti_device_memory *memory);
/* @} */

void smalti_device_locals_free(struct smalti_device *device);
