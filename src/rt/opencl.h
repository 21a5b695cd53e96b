/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_RT_OPENCL_H
#define SMALTI_RT_OPENCL_H

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
	cl_uint kernel_count;
	struct smalti_device_memory scratch[SMALTI_DEVICE_SCRATCH];
};

#endif
