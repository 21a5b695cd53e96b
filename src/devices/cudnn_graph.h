/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "devices/device.h"

#include <cudnn.h>

/* Operation graphs of cuDNN. The library can make and check them without a device. */

enum { SMALTI_CUDNN_MAX_DESCRIPTORS = 64 };

/* The target of a graph: the device of a handle, which can execute it, or, without a handle, a described
 * device (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). Both NULL: cuDNN checks only the graph. */
struct smalti_cudnn_target {
	cudnnHandle_t handle;
	cudnnBackendDescriptor_t device;
};

struct smalti_cudnn_graph {
	struct smalti_cudnn_target target;
	cudnnStatus_t status; /* the first failure; nothing more is made after it */
	int count;
	cudnnBackendDescriptor_t made[SMALTI_CUDNN_MAX_DESCRIPTORS];
	cudnnBackendDescriptor_t whole;
};

/* The identifiers of a graph's tensors at execution. The scale is a float in host memory. */
enum smalti_cudnn_tensor {
	SMALTI_CUDNN_X = 1,
	SMALTI_CUDNN_WEIGHT,
	SMALTI_CUDNN_BIAS,
	SMALTI_CUDNN_Y,
	SMALTI_CUDNN_Q,
	SMALTI_CUDNN_K,
	SMALTI_CUDNN_V,
	SMALTI_CUDNN_SCALE,
};

/* Make the graph. Return 0, or -1 with SMALTI_EUNSUPPORTED and cuDNN's reason. The caller frees the graph in
 * both cases. @{ */
int smalti_cudnn_convolution_graph(const struct smalti_device_convolution *convolution,
				   struct smalti_cudnn_target target, struct smalti_cudnn_graph *graph,
				   struct smalti_error *error);
int smalti_cudnn_sdpa_graph(const struct smalti_device_sdpa *sdpa, struct smalti_cudnn_target target,
			    struct smalti_cudnn_graph *graph, struct smalti_error *error);
/* @} */
void smalti_cudnn_graph_free(struct smalti_cudnn_graph *graph);
