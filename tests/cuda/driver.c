/* SPDX-License-Identifier: Apache-2.0
 *
 * Stands in for CUDA's driver (libcuda.so.1) where cuDNN makes plans for a device that is described: takes
 * the kernels that cuDNN compiles, and keeps the name of the last one. Unused arguments are left out: the
 * caller removes them. */
#include <stdio.h>

/* A test finds it by this name. */
extern char driver_kernel[256];
char driver_kernel[256];

static int give(void **made)
{
	static int thing;
	*made = &thing;
	return 0;
}

static int name_kernel(void **made, const char *name)
{
	snprintf(driver_kernel, sizeof(driver_kernel), "%s", name);
	return give(made);
}

/* A call with its arguments, and what it returns. */
#define CALL(name, arguments, result)                                                                        \
	int name arguments;                                                                                  \
	int name arguments                                                                                   \
	{                                                                                                    \
		return result;                                                                               \
	}
CALL(cuLibraryLoadData, (void **library), give(library))
CALL(cuModuleLoadData, (void **module), give(module))
CALL(cuModuleLoadDataEx, (void **module), give(module))
CALL(cuLibraryGetKernel, (void **kernel, const void *library, const char *name),
     ((void)library, name_kernel(kernel, name)))
CALL(cuModuleGetFunction, (void **function, const void *module, const char *name),
     ((void)module, name_kernel(function, name)))
CALL(cuKernelGetFunction, (void **function), give(function))
CALL(cuKernelGetAttribute, (int *number), *number = 0)
CALL(cuFuncGetAttribute, (int *number), *number = 0)
CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *number), !(*number = 1))
CALL(cuOccupancyMaxActiveClusters, (int *number), !(*number = 1))
CALL(cuKernelSetAttribute, (void), 0)
CALL(cuFuncSetAttribute, (void), 0)
CALL(cuLibraryUnload, (void), 0)
CALL(cuModuleUnload, (void), 0)

/* cuDNN looks for these, and does without: CUDA_ERROR_STUB_LIBRARY. */
#define NO(name) CALL(name, (void), 34)
NO(cuCtxGetCurrent)
NO(cuCtxGetLimit)
NO(cuCtxPopCurrent)
NO(cuCtxPushCurrent)
NO(cuDeviceGet)
NO(cuDeviceGetCount)
NO(cuDriverGetVersion)
NO(cuGetErrorName)
NO(cuGetErrorString)
NO(cuLaunchCooperativeKernel)
NO(cuLaunchKernel)
NO(cuLaunchKernelEx)
NO(cuLibraryLoadFromFile)
NO(cuLinkAddData)
NO(cuLinkComplete)
NO(cuLinkCreate)
NO(cuLinkDestroy)
NO(cuOccupancyMaxPotentialClusterSize)
NO(cuStreamGetCtx)
