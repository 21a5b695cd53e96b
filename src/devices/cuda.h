/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/driver.h"

#include <cublasLt.h>

/* A kernel that was looked up, in the slot of its name's hash. */
enum { SMALTI_CUDA_KERNELS = 512 };
struct smalti_cuda_kernel {
	const char *name; /* a constant of the program */
	cudaKernel_t kernel;
};

/* CUDA's form of a device; cuda*.c use it. */
struct smalti_cuda_device {
	struct smalti_device device;
	int number;
	cudaStream_t stream; /* the worker's; set by its first task */
	cudaLibrary_t kernels;
	struct smalti_cuda_kernel known[SMALTI_CUDA_KERNELS];
	cublasLtHandle_t cublas;
	struct smalti_device_memory workspace[SMALTI_DEVICE_LANES]; /* cuBLASLt's and cuDNN's */
	struct smalti_cuda_product *products;                       /* cuda_products.c */
	struct smalti_cuda_graphs *graphs;                          /* cuda_graphs.c */
	struct smalti_cuda_attention *attention; /* cuda_attention.c; NULL: the device has no such kernels */
	struct smalti_cuda_records *records;     /* cuda_repeat.c; NULL: nothing was repeated yet */
	struct smalti_nvml *nvml;                /* NULL: there is no NVML */
};

/* Returns the stream of the worker's commands, for its thread. */
cudaStream_t smalti_cuda_stream(struct smalti_cuda_device *cuda);

/* Return a command's workspace, NULL with an error, and its bytes, which are fewer on small devices. @{ */
void *smalti_cuda_workspace(struct smalti_cuda_device *cuda, struct smalti_error *error);
int64_t smalti_cuda_workspace_bytes(const struct smalti_cuda_device *cuda);
/* @} */

/* Compute products by cuBLASLt. 0, or -1 with an error. @{ */
int smalti_cuda_products_open(struct smalti_cuda_device *cuda, struct smalti_error *error);
void smalti_cuda_products_close(struct smalti_cuda_device *cuda);
bool smalti_cuda_makes(const struct smalti_device_product *product);
int smalti_cuda_product(struct smalti_device *device, const struct smalti_device_product *product,
			const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			const struct smalti_device_memory *y, struct smalti_error *error);
/* @} */

/* Repeat work by CUDA graphs, made when a key comes for the second time; see devices/device.h. @{ */
int smalti_cuda_repeat(struct smalti_device *device, uint64_t key, const struct smalti_device_work *work,
		       struct smalti_error *error);
void smalti_cuda_follow(struct smalti_device *device, const int behind[SMALTI_DEVICE_LANES]);
void smalti_cuda_repeat_close(struct smalti_cuda_device *cuda);
/* @} */

/* Attend by kernels for compute capability 9.0; see devices/device.h. Other devices are left unopened. @{ */
void smalti_cuda_attention_open(struct smalti_cuda_device *cuda);
void smalti_cuda_attention_close(struct smalti_cuda_device *cuda);
bool smalti_cuda_attends_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a);
int smalti_cuda_attend_tile(struct smalti_device *device, const struct smalti_device_attend_tile *a,
			    struct smalti_error *error);
/* @} */

/* Convolve and attend by cuDNN, if it is there; see devices/device.h. @{ */
void smalti_cuda_graphs_open(struct smalti_cuda_device *cuda);
void smalti_cuda_graphs_close(struct smalti_cuda_device *cuda);
bool smalti_cuda_has_convolution(struct smalti_device *device, const struct smalti_device_convolution *c);
int smalti_cuda_convolve(struct smalti_device *device, const struct smalti_device_convolution *c,
			 const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			 const struct smalti_device_memory *y, struct smalti_error *error);
bool smalti_cuda_has_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *sdpa);
int smalti_cuda_sdpa(struct smalti_device *device, const struct smalti_device_sdpa *sdpa,
		     const struct smalti_device_memory *q, const struct smalti_device_memory *kv,
		     const struct smalti_device_memory *bias, float scale,
		     const struct smalti_device_memory *y, struct smalti_error *error);
/* @} */
