/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of cuDNN that Smalti calls: descriptors keep their values, and a plan computes the operations
 * of its graph one after another, in f32. Only the real library tells whether cuDNN takes a graph. */
#include "cuda/memory.h"
#include "cuda/streams.h"

extern "C" {
#include "base/dtype.h"
}

#include <cmath>
#include <cstring>
#include <cudnn.h>
#include <map>

namespace
{
struct descriptor {
	cudnnBackendDescriptorType_t type;
	std::map<int, std::vector<char>> attributes;

	template <typename value> std::vector<value> all(int name) const
	{
		const auto found = attributes.find(name);
		std::vector<value> values(found == attributes.end() ? 0
								    : found->second.size() / sizeof(value));
		if (!values.empty())
			memcpy(values.data(), found->second.data(), values.size() * sizeof(value));
		return values;
	}

	template <typename value> value one(int name) const
	{
		value first;
		memcpy(&first, attributes.at(name).data(), sizeof(first));
		return first;
	}

	const descriptor &part(int name) const
	{
		return *one<const descriptor *>(name);
	}
};

descriptor &of(cudnnBackendDescriptor_t handle)
{
	return *static_cast<descriptor *>(handle);
}

/* A tensor during a plan's execution: its values by its strides, wide. */
struct tensor {
	std::vector<int64_t> extents, strides;
	enum smalti_dtype dtype;
	std::vector<float> values;
	char *memory = nullptr; /* NULL: virtual */

	int64_t place(const int64_t at[4]) const
	{
		int64_t sum = 0;
		for (int i = 0; i < 4; i++)
			sum += extents[i] == 1 ? 0 : at[i] * strides[i];
		return sum;
	}

	float &operator[](const int64_t (&at)[4])
	{
		return values[place(at)];
	}
};

template <typename function> void each(const std::vector<int64_t> &extents, function act)
{
	for (int64_t a = 0; a < extents[0]; a++)
		for (int64_t b = 0; b < extents[1]; b++)
			for (int64_t c = 0; c < extents[2]; c++)
				for (int64_t d = 0; d < extents[3]; d++)
					act({a, b, c, d});
}

using index = const int64_t (&)[4];

/* Returns the sum of n products, in eight sums that the compiler keeps in vectors where the steps are known
 * to be 1. */
inline __attribute__((always_inline)) float dot_of(const float *a, int64_t a_step, const float *b,
						   int64_t b_step, int64_t n)
{
	enum { SUMS = 8 };
	float sums[SUMS] = {}, sum = 0;
	int64_t i = 0;
	for (; i + SUMS <= n; i += SUMS)
		for (int k = 0; k < SUMS; k++)
			sums[k] += a[(i + k) * a_step] * b[(i + k) * b_step];
	for (; i < n; i++)
		sum += a[i * a_step] * b[i * b_step];
	for (float of : sums)
		sum += of;
	return sum;
}

float dot(const float *a, int64_t a_step, const float *b, int64_t b_step, int64_t n)
{
	return a_step == 1 && b_step == 1 ? dot_of(a, 1, b, 1, n) : dot_of(a, a_step, b, b_step, n);
}

/* One execution: the graph's tensors by their numbers. */
struct execution {
	int device;
	std::map<int64_t, const void *> given;
	std::map<int64_t, float> values; /* of the host's */
	std::map<int64_t, tensor> tensors;

	tensor &at(const descriptor &what)
	{
		const auto number = what.one<int64_t>(CUDNN_ATTR_TENSOR_UNIQUE_ID);
		const auto found = tensors.find(number);
		return found == tensors.end() ? tensors[number] = load(what, number) : found->second;
	}

	tensor load(const descriptor &what, int64_t number)
	{
		static const std::map<cudnnDataType_t, enum smalti_dtype> dtypes = {
		    {CUDNN_DATA_FLOAT, SMALTI_F32},
		    {CUDNN_DATA_HALF, SMALTI_F16},
		    {CUDNN_DATA_BFLOAT16, SMALTI_BF16}};
		tensor made = {what.all<int64_t>(CUDNN_ATTR_TENSOR_DIMENSIONS),
			       what.all<int64_t>(CUDNN_ATTR_TENSOR_STRIDES),
			       dtypes.at(what.one<cudnnDataType_t>(CUDNN_ATTR_TENSOR_DATA_TYPE)),
			       {},
			       nullptr};
		int64_t count = 1;
		for (int i = 0; i < 4; i++)
			count += (made.extents[i] - 1) * made.strides[i];
		made.values.resize(count);
		if (what.one<bool>(CUDNN_ATTR_TENSOR_IS_VIRTUAL))
			return made;
		if (what.one<bool>(CUDNN_ATTR_TENSOR_IS_BY_VALUE)) {
			made.values[0] = values.at(number);
			return made;
		}
		made.memory =
		    standin_at(given.at(number), device, count * smalti_dtype_bytes(made.dtype), "a graph");
		if (reinterpret_cast<uintptr_t>(given.at(number)) %
		    what.one<int64_t>(CUDNN_ATTR_TENSOR_BYTE_ALIGNMENT))
			standin_refuse("tensor %ld of a graph is at %p", (long)number, given.at(number));
		smalti_widen(made.dtype, made.memory, count, made.values.data());
		return made;
	}

	/* Stores values, rounded to the dtype, also into memory, if it has any. */
	void store(tensor &made)
	{
		std::vector<char> narrow(made.values.size() * 4);
		smalti_narrow(made.dtype, made.values.data(), made.values.size(), narrow.data());
		if (made.memory)
			memcpy(made.memory, narrow.data(),
			       made.values.size() * smalti_dtype_bytes(made.dtype));
		smalti_widen(made.dtype, narrow.data(), made.values.size(), made.values.data());
	}

	void convolve(const descriptor &operation)
	{
		const descriptor &how = operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC);
		const auto before = how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS),
			   strides = how.all<int64_t>(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES);
		tensor &x = at(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X));
		tensor &w = at(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W));
		tensor &y = at(operation.part(CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
		const std::vector<int64_t> taps = {1, 1, w.extents[2], w.extents[3]};
		each(y.extents, [&](index i) {
			float sum = 0;
			each(taps, [&](index tap) {
				const int64_t row = i[2] * strides[0] + tap[2] - before[0];
				const int64_t column = i[3] * strides[1] + tap[3] - before[1];
				if (row >= 0 && row < x.extents[2] && column >= 0 && column < x.extents[3])
					sum += dot(&x[{i[0], 0, row, column}], x.strides[1],
						   &w[{i[1], 0, tap[2], tap[3]}], w.strides[1], w.extents[1]);
			});
			y[i] = sum;
		});
		store(y);
	}

	void compute(const descriptor &operation)
	{
		const auto mode = operation.part(CUDNN_ATTR_OPERATION_POINTWISE_PW_DESCRIPTOR)
				      .one<cudnnPointwiseMode_t>(CUDNN_ATTR_POINTWISE_MODE);
		tensor &x = at(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_XDESC));
		tensor &b = mode == CUDNN_POINTWISE_EXP || mode == CUDNN_POINTWISE_LOG
				? x
				: at(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_BDESC));
		tensor &y = at(operation.part(CUDNN_ATTR_OPERATION_POINTWISE_YDESC));
		each(y.extents, [&](index i) {
			y[i] = mode == CUDNN_POINTWISE_ADD   ? x[i] + b[i]
			       : mode == CUDNN_POINTWISE_SUB ? x[i] - b[i]
			       : mode == CUDNN_POINTWISE_MUL ? x[i] * b[i]
			       : mode == CUDNN_POINTWISE_DIV ? x[i] / b[i]
			       : mode == CUDNN_POINTWISE_LOG ? logf(x[i])
							     : expf(x[i]);
		});
		store(y);
	}

	void multiply(const descriptor &operation)
	{
		tensor &a = at(operation.part(CUDNN_ATTR_OPERATION_MATMUL_ADESC));
		tensor &b = at(operation.part(CUDNN_ATTR_OPERATION_MATMUL_BDESC));
		tensor &c = at(operation.part(CUDNN_ATTR_OPERATION_MATMUL_CDESC));
		each(c.extents, [&](index i) {
			c[i] = dot(&a[{i[0], i[1], i[2], 0}], a.strides[3], &b[{i[0], i[1], 0, i[3]}],
				   b.strides[2], a.extents[3]);
		});
		store(c);
	}

	void reduce(const descriptor &operation)
	{
		const bool adds =
		    operation.part(CUDNN_ATTR_OPERATION_REDUCTION_DESC)
			.one<cudnnReduceTensorOp_t>(CUDNN_ATTR_REDUCTION_OPERATOR) == CUDNN_REDUCE_TENSOR_ADD;
		tensor &x = at(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_XDESC));
		tensor &y = at(operation.part(CUDNN_ATTR_OPERATION_REDUCTION_YDESC));
		each(y.extents, [&](index i) { y[i] = adds ? 0 : -INFINITY; });
		each(x.extents, [&](index i) { y[i] = adds ? y[i] + x[i] : fmaxf(y[i], x[i]); });
		store(y);
	}

	/* Makes an operation's result wrong by a quarter. */
	void spoil(const descriptor &operation)
	{
		tensor &y = at(operation.part(operation.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR
						  ? CUDNN_ATTR_OPERATION_MATMUL_CDESC
						  : CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y));
		for (float &value : y.values)
			value *= 1.25F;
		store(y);
	}

	void run(const descriptor &operation)
	{
		if (operation.type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR)
			convolve(operation);
		else if (operation.type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR)
			compute(operation);
		else if (operation.type == CUDNN_BACKEND_OPERATION_MATMUL_DESCRIPTOR)
			multiply(operation);
		else
			reduce(operation);
	}
};

size_t bytes_of(cudnnBackendAttributeType_t type)
{
	switch (type) {
	case CUDNN_TYPE_BOOLEAN:
		return sizeof(bool);
	case CUDNN_TYPE_INT64:
	case CUDNN_TYPE_HANDLE:
	case CUDNN_TYPE_VOID_PTR:
	case CUDNN_TYPE_BACKEND_DESCRIPTOR:
		return 8;
	default:
		return 4;
	}
}

/* Kept until the end: pending work refers to them. */
std::vector<std::unique_ptr<descriptor>> descriptors;
} // namespace

size_t cudnnGetVersion()
{
	return CUDNN_VERSION;
}

cudnnStatus_t cudnnCreate(cudnnHandle_t *handle)
{
	if (standin_fails("cudnn"))
		return CUDNN_STATUS_NOT_INITIALIZED;
	*handle = reinterpret_cast<cudnnHandle_t>(new standin_stream *(nullptr));
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnDestroy(cudnnHandle_t handle)
{
	delete reinterpret_cast<standin_stream **>(handle);
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream)
{
	*reinterpret_cast<standin_stream **>(handle) = reinterpret_cast<standin_stream *>(stream);
	return CUDNN_STATUS_SUCCESS;
}

const char *cudnnGetErrorString(cudnnStatus_t)
{
	return "a status of the stand-in";
}

void cudnnGetLastErrorString(char *message, size_t size)
{
	if (size)
		*message = 0;
}

cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type, cudnnBackendDescriptor_t *made)
{
	const std::lock_guard<std::recursive_mutex> turn(standin_turn);
	descriptors.emplace_back(new descriptor{type, {}});
	*made = descriptors.back().get();
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t)
{
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t)
{
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t handle, cudnnBackendAttributeName_t name,
				       cudnnBackendAttributeType_t type, int64_t count, const void *values)
{
	const char *from = static_cast<const char *>(values);
	of(handle).attributes[name].assign(from, from + count * bytes_of(type));
	return CUDNN_STATUS_SUCCESS;
}

/* Returns one configuration, which mode A proposes, of an engine without notes and workspace. */
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const handle,
				       cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t, int64_t,
				       int64_t *count, void *values)
{
	*count = name != CUDNN_ATTR_ENGINE_NUMERICAL_NOTE && name != CUDNN_ATTR_ENGINE_BEHAVIOR_NOTE;
	if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS)
		*count =
		    of(handle).one<cudnnBackendHeurMode_t>(CUDNN_ATTR_ENGINEHEUR_MODE) == CUDNN_HEUR_MODE_A;
	if (name == CUDNN_ATTR_ENGINEHEUR_RESULTS && *count)
		of(*static_cast<cudnnBackendDescriptor_t *>(values)) = of(handle); /* has the graph */
	if (name == CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE)
		*static_cast<int64_t *>(values) = 0;
	return CUDNN_STATUS_SUCCESS;
}

cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
				  cudnnBackendDescriptor_t pack)
{
	const std::lock_guard<std::recursive_mutex> turn(standin_turn);
	standin_stream *stream = *reinterpret_cast<standin_stream **>(handle);
	const auto numbers = of(pack).all<int64_t>(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS);
	const auto addresses = of(pack).all<const void *>(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS);
	const auto operations = of(plan)
				    .part(CUDNN_ATTR_EXECUTION_PLAN_ENGINE_CONFIG)
				    .part(CUDNN_ATTR_ENGINEHEUR_OPERATION_GRAPH)
				    .all<const descriptor *>(CUDNN_ATTR_OPERATIONGRAPH_OPS);
	execution execution = {stream->device, {}, {}, {}};
	if (standin_fails("graph") || standin_lost("graph", stream->device))
		return CUDNN_STATUS_EXECUTION_FAILED;
	for (size_t i = 0; i < numbers.size(); i++)
		if (standin_device_of(addresses[i]) < 0)
			execution.values[numbers[i]] = *static_cast<const float *>(addresses[i]);
		else
			execution.given[numbers[i]] = addresses[i];
	const bool wrong = standin_fails("values");
	standin_add_step(stream, [execution, operations, wrong]() mutable {
		for (const descriptor *operation : operations)
			execution.run(*operation);
		if (wrong)
			execution.spoil(*operations.back());
	});
	return CUDNN_STATUS_SUCCESS;
}
