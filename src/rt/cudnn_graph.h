/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/device.h"

#include <cudnn.h>

/* Operation graphs of cuDNN: made, and checked by the library, without a device. */

enum { SMALTI_CUDNN_MOST_DESCRIPTORS = 64 };

/* What a graph is for: the device of a handle, by which it can be executed, or, without a handle, one that is
 * described (CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR). Both NULL: cuDNN checks the graph alone. */
struct smalti_cudnn_target {
	cudnnHandle_t handle;
	cudnnBackendDescriptor_t device;
};

struct smalti_cudnn_graph {
	struct smalti_cudnn_target target;
	cudnnStatus_t status; /* the first that was not CUDNN_STATUS_SUCCESS: nothing more is made then */
	int count;
	cudnnBackendDescriptor_t made[SMALTI_CUDNN_MOST_DESCRIPTORS];
	cudnnBackendDescriptor_t whole;
};

/* What a graph's tensors are known by where it is executed. The scale is a float of the host. */
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

/* 0, or -1 with SMALTI_EUNSUPPORTED: what the library says of it. The graph is to be freed in both cases. @{
 */
int smalti_cudnn_convolution_graph(const struct smalti_device_convolution *convolution,
				   struct smalti_cudnn_target target, struct smalti_cudnn_graph *graph,
				   struct smalti_error *error);
int smalti_cudnn_sdpa_graph(const struct smalti_device_sdpa *sdpa, struct smalti_cudnn_target target,
			    struct smalti_cudnn_graph *graph, struct smalti_error *error);
/* @} */
void smalti_cudnn_graph_free(struct smalti_cudnn_graph *graph);
