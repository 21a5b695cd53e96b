/* SPDX-License-Identifier: Apache-2.0 */
#include "devices/cudnn_graph.h"

#include <stdio.h>

static const cudnnDataType_t types[] = {
    [SMALTI_F32] = CUDNN_DATA_FLOAT, [SMALTI_F16] = CUDNN_DATA_HALF, [SMALTI_BF16] = CUDNN_DATA_BFLOAT16};

static cudnnBackendDescriptor_t make(struct smalti_cudnn_graph *g, cudnnBackendDescriptorType_t type)
{
	cudnnBackendDescriptor_t made = NULL;
	if (!g->status && g->count == SMALTI_CUDNN_MAX_DESCRIPTORS)
		g->status = CUDNN_STATUS_INTERNAL_ERROR;
	if (!g->status)
		g->status = cudnnBackendCreateDescriptor(type, &made);
	if (!g->status)
		g->made[g->count++] = made;
	return made;
}

static void set(struct smalti_cudnn_graph *g, cudnnBackendDescriptor_t descriptor,
		cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, int64_t count,
		const void *values)
{
	if (!g->status)
		g->status = cudnnBackendSetAttribute(descriptor, name, type, count, values);
}

static void finish(struct smalti_cudnn_graph *g, cudnnBackendDescriptor_t descriptor)
{
	if (!g->status)
		g->status = cudnnBackendFinalize(descriptor);
}

/* Sets a descriptor as an attribute of another one. */
static void refer(struct smalti_cudnn_graph *g, cudnnBackendDescriptor_t descriptor,
		  cudnnBackendAttributeName_t name, cudnnBackendDescriptor_t part)
{
	set(g, descriptor, name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &part);
}

/* The sizes and strides, in elements. */
struct extents {
	int64_t of[4], strides[4];
};

/* Describes a tensor; number 0: never in memory. */
static cudnnBackendDescriptor_t tensor(struct smalti_cudnn_graph *g, enum smalti_cudnn_tensor number,
				       enum smalti_dtype dtype, const struct extents *extents)
{
	cudnnBackendDescriptor_t made = make(g, CUDNN_BACKEND_TENSOR_DESCRIPTOR);
	const int64_t alignment = 16, name = number ? (int64_t)number : 100 + g->count;
	const bool is_virtual = !number, by_value = number == SMALTI_CUDNN_SCALE;
	set(g, made, CUDNN_ATTR_TENSOR_UNIQUE_ID, CUDNN_TYPE_INT64, 1, &name);
	set(g, made, CUDNN_ATTR_TENSOR_DATA_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &types[dtype]);
	set(g, made, CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT, CUDNN_TYPE_INT64, 1, &alignment);
	set(g, made, CUDNN_ATTR_TENSOR_DIMENSIONS, CUDNN_TYPE_INT64, 4, extents->of);
	set(g, made, CUDNN_ATTR_TENSOR_STRIDES, CUDNN_TYPE_INT64, 4, extents->strides);
	set(g, made, CUDNN_ATTR_TENSOR_IS_VIRTUAL, CUDNN_TYPE_BOOLEAN, 1, &is_virtual);
	set(g, made, CUDNN_ATTR_TENSOR_IS_BY_VALUE, CUDNN_TYPE_BOOLEAN, 1, &by_value);
	finish(g, made);
	return made;
}

/* Lays the channels of a pixel together. */
static struct extents map_of(int64_t maps, int64_t channels, int64_t rows, int64_t width)
{
	return (struct extents){{maps, channels, rows, width},
				{rows * width * channels, 1, width * channels, channels}};
}

/* Adds y = `mode`(x, b), in f32; b may be NULL. Returns the operation. */
static cudnnBackendDescriptor_t pointwise(struct smalti_cudnn_graph *g, cudnnPointwiseMode_t mode,
					  cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t b,
					  cudnnBackendDescriptor_t y)
{
	cudnnBackendDescriptor_t what = make(g, CUDNN_BACKEND_POINTWISE_DESCRIPTOR);
	set(g, what, CUDNN_ATTR_POINTWISE_MODE, CUDNN_TYPE_POINTWISE_MODE, 1, &mode);
	set(g, what, CUDNN_ATTR_POINTWISE_MATH_PREC, CUDNN_TYPE_DATA_TYPE, 1, &types[SMALTI_F32]);
	finish(g, what);
	cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR);
	refer(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR, what);
	refer(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_XDESC, x);
	if (b)
		refer(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_BDESC, b);
	refer(g, operation, CUDNN_ATTR_OPERATION_POINTWISE_YDESC, y);
	finish(g, operation);
	return operation;
}

static int complete(struct smalti_cudnn_graph *g, cudnnBackendDescriptor_t *operations, int count,
		    const char *what, struct smalti_error *error)
{
	char said[256] = "";
	g->whole = make(g, CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR);
	if (g->target.handle)
		set(g, g->whole, CUDNN_ATTR_OPERATIONGRAPH_HANDLE, CUDNN_TYPE_HANDLE, 1, &g->target.handle);
	set(g, g->whole, CUDNN_ATTR_OPERATIONGRAPH_OPS, CUDNN_TYPE_BACKEND_DESCRIPTOR, count, operations);
	finish(g, g->whole);
	if (!g->status)
		return 0;
	cudnnGetLastErrorString(said, sizeof(said));
	return smalti_fail(error, SMALTI_EUNSUPPORTED, "%s: cuDNN says '%s' (%s)", what,
			   cudnnGetErrorString(g->status), said);
}

static cudnnBackendDescriptor_t
convolve(struct smalti_cudnn_graph *g, const struct smalti_device_convolution *c, cudnnBackendDescriptor_t y)
{
	const cudnnConvolutionMode_t mode = CUDNN_CROSS_CORRELATION;
	const int64_t axes = 2, before[] = {0, c->stride == 2 ? 0 : 1}, after[] = {0, 1}, apart[] = {1, 1},
		      strides[] = {c->stride, c->stride};
	const struct extents x_extents = map_of(1, c->in, c->rows + (c->stride == 2 ? 1 : 2), c->width),
			     w_extents = map_of(c->out, c->in, 3, 3);
	const float one = 1, zero = 0;
	cudnnBackendDescriptor_t what = make(g, CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
	set(g, what, CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &types[SMALTI_F32]);
	set(g, what, CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, 1, &mode);
	set(g, what, CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, CUDNN_TYPE_INT64, 1, &axes);
	set(g, what, CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, CUDNN_TYPE_INT64, 2, before);
	set(g, what, CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, CUDNN_TYPE_INT64, 2, after);
	set(g, what, CUDNN_ATTR_CONVOLUTION_DILATIONS, CUDNN_TYPE_INT64, 2, apart);
	set(g, what, CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, CUDNN_TYPE_INT64, 2, strides);
	finish(g, what);
	cudnnBackendDescriptor_t x = tensor(g, SMALTI_CUDNN_X, c->dtype, &x_extents),
				 w = tensor(g, SMALTI_CUDNN_WEIGHT, c->dtype, &w_extents);
	cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR);
	refer(g, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC, what);
	refer(g, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X, x);
	refer(g, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W, w);
	refer(g, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y, y);
	set(g, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA, CUDNN_TYPE_FLOAT, 1, &one);
	set(g, operation, CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA, CUDNN_TYPE_FLOAT, 1, &zero);
	finish(g, operation);
	return operation;
}

int smalti_cudnn_convolution_graph(const struct smalti_device_convolution *c,
				   struct smalti_cudnn_target target, struct smalti_cudnn_graph *g,
				   struct smalti_error *error)
{
	const struct extents result = map_of(1, c->out, c->rows / c->stride, c->width / c->stride);
	char what[128];
	*g = (struct smalti_cudnn_graph){.target = target, .status = CUDNN_STATUS_SUCCESS};
	cudnnBackendDescriptor_t operation = convolve(g, c, tensor(g, SMALTI_CUDNN_Y, c->dtype, &result));
	snprintf(what, sizeof(what), "convolution of %lld x %lld x %lld to %lld channels", (long long)c->rows,
		 (long long)c->width, (long long)c->in, (long long)c->out);
	return complete(g, &operation, 1, what, error);
}

static cudnnBackendDescriptor_t multiply(struct smalti_cudnn_graph *g, cudnnBackendDescriptor_t a,
					 cudnnBackendDescriptor_t b, cudnnBackendDescriptor_t c)
{
	cudnnBackendDescriptor_t what = make(g, CUDNN_BACKEND_MATMUL_DESCRIPTOR);
	set(g, what, CUDNN_ATTR_MATMUL_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &types[SMALTI_F32]);
	finish(g, what);
	cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR);
	refer(g, operation, CUDNN_ATTR_OPERATION_MATMUL_ADESC, a);
	refer(g, operation, CUDNN_ATTR_OPERATION_MATMUL_BDESC, b);
	refer(g, operation, CUDNN_ATTR_OPERATION_MATMUL_CDESC, c);
	refer(g, operation, CUDNN_ATTR_OPERATION_MATMUL_DESC, what);
	finish(g, operation);
	return operation;
}

static cudnnBackendDescriptor_t reduce(struct smalti_cudnn_graph *g, cudnnReduceTensorOp_t how,
				       cudnnBackendDescriptor_t x, cudnnBackendDescriptor_t y)
{
	cudnnBackendDescriptor_t what = make(g, CUDNN_BACKEND_REDUCTION_DESCRIPTOR);
	set(g, what, CUDNN_ATTR_REDUCTION_OPERATOR, CUDNN_TYPE_REDUCTION_OPERATOR_TYPE, 1, &how);
	set(g, what, CUDNN_ATTR_REDUCTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, 1, &types[SMALTI_F32]);
	finish(g, what);
	cudnnBackendDescriptor_t operation = make(g, CUDNN_BACKEND_OPERATION_REDUCTION_DESCRIPTOR);
	refer(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_XDESC, x);
	refer(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_YDESC, y);
	refer(g, operation, CUDNN_ATTR_OPERATION_REDUCTION_DESC, what);
	finish(g, operation);
	return operation;
}

/* Adds the softmax from scores to weights; returns the weights. It needs no log of the sum, but engines
 * accept attention only with it. */
static cudnnBackendDescriptor_t soften(struct smalti_cudnn_graph *g, const struct smalti_device_sdpa *a,
				       cudnnBackendDescriptor_t scores, cudnnBackendDescriptor_t *operations,
				       int *count)
{
	const struct extents all = {{1, a->heads, a->queries, a->keys},
				    {a->heads * a->queries * a->keys, a->queries * a->keys, a->keys, 1}},
			     rows = {{1, a->heads, a->queries, 1}, {a->heads * a->queries, a->queries, 1, 1}};
	cudnnBackendDescriptor_t largest = tensor(g, 0, SMALTI_F32, &rows),
				 below = tensor(g, 0, SMALTI_F32, &all),
				 powers = tensor(g, 0, SMALTI_F32, &all),
				 sum = tensor(g, 0, SMALTI_F32, &rows), log = tensor(g, 0, SMALTI_F32, &rows),
				 log_of_sum = tensor(g, 0, SMALTI_F32, &rows),
				 weights = tensor(g, 0, a->dtype, &all);
	operations[(*count)++] = reduce(g, CUDNN_REDUCE_TENSOR_MAX, scores, largest);
	operations[(*count)++] = pointwise(g, CUDNN_POINTWISE_SUB, scores, largest, below);
	operations[(*count)++] = pointwise(g, CUDNN_POINTWISE_EXP, below, NULL, powers);
	operations[(*count)++] = reduce(g, CUDNN_REDUCE_TENSOR_ADD, powers, sum);
	operations[(*count)++] = pointwise(g, CUDNN_POINTWISE_LOG, sum, NULL, log);
	operations[(*count)++] = pointwise(g, CUDNN_POINTWISE_ADD, largest, log, log_of_sum);
	operations[(*count)++] = pointwise(g, CUDNN_POINTWISE_DIV, powers, sum, weights);
	return weights;
}

int smalti_cudnn_sdpa_graph(const struct smalti_device_sdpa *a, struct smalti_cudnn_target target,
			    struct smalti_cudnn_graph *g, struct smalti_error *error)
{
	const int64_t q = a->queries, k = a->keys, h = a->heads, d = a->head_dim;
	const struct extents q_extents = {{1, h, q, d}, {q * h * d, d, h * d, 1}},
			     k_extents = {{1, h, d, k}, {2 * k * h * d, d, 1, 2 * h * d}},
			     v_extents = {{1, h, k, d}, {2 * k * h * d, d, 2 * h * d, 1}},
			     all = {{1, h, q, k}, {h * q * k, q * k, k, 1}},
			     one = {{1, 1, 1, 1}, {1, 1, 1, 1}};
	cudnnBackendDescriptor_t operations[11];
	char what[128];
	int count = 0;
	*g = (struct smalti_cudnn_graph){.target = target, .status = CUDNN_STATUS_SUCCESS};
	cudnnBackendDescriptor_t products = tensor(g, 0, SMALTI_F32, &all),
				 scores = tensor(g, 0, SMALTI_F32, &all);
	operations[count++] = multiply(g, tensor(g, SMALTI_CUDNN_Q, a->dtype, &q_extents),
				       tensor(g, SMALTI_CUDNN_K, a->dtype, &k_extents), products);
	operations[count++] = pointwise(g, CUDNN_POINTWISE_MUL, products,
					tensor(g, SMALTI_CUDNN_SCALE, SMALTI_F32, &one), scores);
	if (a->biased) {
		cudnnBackendDescriptor_t sums = tensor(g, 0, SMALTI_F32, &all);
		operations[count++] = pointwise(g, CUDNN_POINTWISE_ADD, scores,
						tensor(g, SMALTI_CUDNN_BIAS, a->dtype, &all), sums);
		scores = sums;
	}
	cudnnBackendDescriptor_t weights = soften(g, a, scores, operations, &count);
	operations[count++] = multiply(g, weights, tensor(g, SMALTI_CUDNN_V, a->dtype, &v_extents),
				       tensor(g, SMALTI_CUDNN_Y, a->dtype, &q_extents));
	snprintf(what, sizeof(what), "attention of %lld queries to %lld keys, %lld heads of %lld",
		 (long long)q, (long long)k, (long long)h, (long long)d);
	return complete(g, operations, count, what, error);
}

void smalti_cudnn_graph_free(struct smalti_cudnn_graph *graph)
{
	while (graph->count > 0)
		cudnnBackendDestroyDescriptor(graph->made[--graph->count]);
}
