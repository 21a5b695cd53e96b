/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/driver.h"

/* OpenCL's form of a device; opencl*.c use it. */
struct smalti_opencl {
	struct smalti_device device;
	cl_context context;
	cl_device_id id;
	cl_command_queue queue;
	cl_program program;
	cl_kernel *kernels;
	char (*names)[64]; /* of the kernels */
	cl_uint kernel_count;
	bool takes_turns;
};

/* Enclose whatever runs a kernel: PoCL's devices take turns. PoCL 3.1 ends the program when two devices
 * launch a kernel for the first time at once: its cache of libraries then has it twice and releases the first
 * entry twice. With its `basic` driver the kernel has run when the launch returns. */
void smalti_opencl_begin(const struct smalti_opencl *opencl);
void smalti_opencl_end(const struct smalti_opencl *opencl);

/* Multiplies by CLBlast. */
int smalti_opencl_product(struct smalti_device *device, const struct smalti_device_product *product,
			  const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			  const struct smalti_device_memory *y, struct smalti_error *error);
