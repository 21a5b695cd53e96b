/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/device_driver.h"

#include <cublasLt.h>

/* CUDA's form of a device, for cuda*.c. */
struct smalti_cuda_device {
	struct smalti_device device;
	int number;
	cudaStream_t stream; /* the worker's, when it has had its first task */
	cudaLibrary_t kernels;
	cublasLtHandle_t cublas;
	struct smalti_device_memory workspace; /* cuBLASLt's */
	struct smalti_cuda_product *products;  /* cuda_products.c */
};

/* What the worker's commands go to, in order. For the worker's thread. */
cudaStream_t smalti_cuda_stream(struct smalti_cuda_device *cuda);

/* By cuBLASLt. 0, or -1 with an error. @{ */
int smalti_cuda_products_open(struct smalti_cuda_device *cuda, struct smalti_error *error);
void smalti_cuda_products_close(struct smalti_cuda_device *cuda);
bool smalti_cuda_makes(const struct smalti_device_product *product);
int smalti_cuda_product(struct smalti_device *device, const struct smalti_device_product *product,
			const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			const struct smalti_device_memory *y, struct smalti_error *error);
/* @} */
