/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/cuda.h"
#include "devices/cudnn_plan.h"

/* Shared by cuda_graphs.c and cuda_graph_check.c. */

/* Describes a convolution or, with queries, attention. */
struct smalti_cuda_shape {
	int64_t rows, width, in, out, stride;
	int64_t queries, keys, heads, head_dim, biased;
	int64_t dtype;
};
enum { SMALTI_CUDA_MAX_HEAD = 256 };

/* Executes a plan on made-up numbers, and compares a few results with the host's. Some versions of cuDNN
 * accept shapes that they compute wrongly, and some plans fail only when they are executed. */
bool smalti_cuda_graph_is_right(struct smalti_cuda_device *cuda, cudnnHandle_t cudnn,
				const struct smalti_cuda_shape *shape, cudnnBackendDescriptor_t plan);
