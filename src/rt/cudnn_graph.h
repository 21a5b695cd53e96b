/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype_enum.h"

#include <cudnn.h>

/* Operation graphs of cuDNN: made, and checked by the library, without a device. */

enum { SMALTI_CUDNN_MOST_DESCRIPTORS = 64 };

struct smalti_cudnn_graph {
	cudnnStatus_t status; /* the first that was not CUDNN_STATUS_SUCCESS: nothing more is made then */
	int count;
	cudnnBackendDescriptor_t made[SMALTI_CUDNN_MOST_DESCRIPTORS];
	cudnnBackendDescriptor_t whole;
};

/* What a graph's tensors are known by where it is executed. */
enum smalti_cudnn_tensor {
	SMALTI_CUDNN_X = 1,
	SMALTI_CUDNN_WEIGHT,
	SMALTI_CUDNN_BIAS,
	SMALTI_CUDNN_RESIDUAL,
	SMALTI_CUDNN_Y,
	SMALTI_CUDNN_Q,
	SMALTI_CUDNN_K,
	SMALTI_CUDNN_V,
	SMALTI_CUDNN_SCALE,
};

/* y f32 [rows / stride, width / stride, out] = x [rows + 2 (stride 2: + 1), width, in] ∗ w [out, 3, 3, in] +
 * bias f32 [out] (+ residual, as y), x and w of `dtype`. x has the rows above (but for stride 2) and below;
 * columns beyond it are zeros. */
struct smalti_cudnn_convolution {
	int64_t rows, width, in, out, stride;
	enum smalti_dtype dtype;
	bool adds;
};

/* y [queries, heads, head_dim] = attention of q, whose rows are `q_stride` elements apart, to `keys` rows of
 * k and v that are `kv_stride` apart, all of `dtype` (f16 or bf16), with scores times a scale f32 [1] (+ bias
 * f32 [heads, queries, keys]). */
struct smalti_cudnn_attention {
	int64_t queries, keys, heads, head_dim, q_stride, kv_stride;
	enum smalti_dtype dtype;
	bool biased;
};

/* 0, or -1 with SMALTI_EUNSUPPORTED: what the library says of it. The graph is to be freed in both cases. @{
 */
int smalti_cudnn_convolution_graph(const struct smalti_cudnn_convolution *convolution,
				   struct smalti_cudnn_graph *graph, struct smalti_error *error);
int smalti_cudnn_attention_graph(const struct smalti_cudnn_attention *attention,
				 struct smalti_cudnn_graph *graph, struct smalti_error *error);
/* @} */
void smalti_cudnn_graph_free(struct smalti_cudnn_graph *graph);
