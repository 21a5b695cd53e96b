/* SPDX-License-Identifier: Apache-2.0
 *
 * The functions of cuBLASLt that Smalti calls, as its manual describes them, and those of cuBLAS that StarPU
 * calls, which compute nothing. */
#include "cuda/memory.h"
#include "cuda/streams.h"

extern "C" {
#include "base/dtype.h"
}

#include <algorithm>
#include <cmath>
#include <cstring>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <vector>

extern "C" {
cublasStatus_t cublasInit(void);
cublasStatus_t cublasShutdown(void);
cublasStatus_t cublasSetKernelStream(cudaStream_t);
}

cublasStatus_t cublasInit(void)
{
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasShutdown(void)
{
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetKernelStream(cudaStream_t)
{
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasCreate_v2(cublasHandle_t *handle)
{
	*handle = nullptr;
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy_v2(cublasHandle_t)
{
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream_v2(cublasHandle_t, cudaStream_t)
{
	return CUBLAS_STATUS_SUCCESS;
}

namespace
{
/* Sets an attribute to the given bytes, which must be as many as it has. */
template <typename value> cublasStatus_t set(value *to, const void *from, size_t bytes)
{
	if (bytes != sizeof(*to))
		return CUBLAS_STATUS_INVALID_VALUE;
	memcpy(to, from, bytes);
	return CUBLAS_STATUS_SUCCESS;
}

struct description {
	cublasComputeType_t compute;
	cudaDataType_t scale;
	cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
	cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
	const void *bias = nullptr;
	int32_t bias_type = -1; /* D's */
};

struct layout {
	cudaDataType_t type;
	uint64_t rows, columns;
	int64_t stride;
	int32_t count = 1;
	int64_t step = 0; /* from a matrix to the next */

	size_t element() const
	{
		return type == CUDA_R_8I ? 1 : type == CUDA_R_32F || type == CUDA_R_32I ? 4 : 2;
	}
	/* Returns the bytes from the first to the last element. */
	size_t bytes() const
	{
		return columns ? ((count - 1) * step + (columns - 1) * stride + rows) * element() : 0;
	}
	layout transposed() const
	{
		return {type, columns, rows, stride, count, step};
	}
};

struct preference {
	uint64_t workspace = 0;
	uint32_t alignment[4] = {256, 256, 256, 256}; /* of A to D */
};

/* A heuristic's choice, in the room of cublasLtMatmulAlgo_t. */
struct choice {
	uint64_t shape, workspace;
	uint32_t alignment[4], bias_alignment;
};
static_assert(sizeof(choice) <= sizeof(cublasLtMatmulAlgo_t));

template <typename opaque> description &of(opaque handle)
{
	return *reinterpret_cast<description *>(handle);
}

layout &layout_of(cublasLtMatrixLayout_t handle)
{
	return *reinterpret_cast<layout *>(handle);
}

float factor_of(const description &d, const void *factor)
{
	return d.scale == CUDA_R_32I ? static_cast<float>(*static_cast<const int32_t *>(factor))
				     : *static_cast<const float *>(factor);
}

bool has_bias(const description &d)
{
	return d.epilogue == CUBLASLT_EPILOGUE_BIAS || d.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
}

bool has_gelu(const description &d)
{
	return d.epilogue == CUBLASLT_EPILOGUE_GELU || d.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS;
}

/* Tells whether these are integers as the manual wants them: multiples of four, w transposed, nothing behind.
 */
bool knows_integers(const description &d, const layout &a, const layout &b, const layout &c, const layout &r)
{
	for (const uint64_t value :
	     {a.rows, r.rows, (uint64_t)a.stride, (uint64_t)b.stride, (uint64_t)r.stride})
		if (value % 4)
			return false;
	return b.type == CUDA_R_8I && c.type == CUDA_R_32I && r.type == CUDA_R_32I && d.scale == CUDA_R_32I &&
	       d.compute == CUBLAS_COMPUTE_32I && d.a == CUBLAS_OP_T && d.b == CUBLAS_OP_N &&
	       d.epilogue == CUBLASLT_EPILOGUE_DEFAULT;
}

bool knows(const description &d, const layout &a, const layout &b, const layout &c, const layout &r)
{
	if (a.type == CUDA_R_8I)
		return knows_integers(d, a, b, c, r);
	const bool types = a.type == b.type && c.type == r.type && (r.type == a.type || r.type == CUDA_R_32F);
	const bool compute = d.scale == CUDA_R_32F &&
			     (d.compute == CUBLAS_COMPUTE_32F || d.compute == CUBLAS_COMPUTE_32F_PEDANTIC ||
			      (d.compute == CUBLAS_COMPUTE_32F_FAST_TF32 && a.type == CUDA_R_32F));
	const bool epilogue = d.epilogue == CUBLASLT_EPILOGUE_DEFAULT || has_bias(d) || has_gelu(d);
	const bool bias = !has_bias(d) || d.bias_type == -1 || d.bias_type == r.type;
	return types && compute && epilogue && bias;
}

bool fits(const description &d, const layout &of_a, const layout &of_b, const layout &c, const layout &r)
{
	const bool strides = of_a.stride >= (int64_t)of_a.rows && of_b.stride >= (int64_t)of_b.rows &&
			     c.stride >= (int64_t)c.rows && r.stride >= (int64_t)r.rows;
	const layout a = d.a == CUBLAS_OP_T ? of_a : of_a.transposed();
	const layout b = d.b == CUBLAS_OP_N ? of_b : of_b.transposed();
	return strides && a.rows == b.rows && a.columns == r.rows && b.columns == r.columns &&
	       c.rows == r.rows && c.columns == r.columns && a.count == b.count && a.count == c.count &&
	       a.count == r.count;
}

/* Returns the alignment of the bias in bytes, at most 256: a choice is for that alignment. */
uint32_t bias_alignment(const description &d)
{
	const uint64_t bits = reinterpret_cast<uintptr_t>(d.bias) | 256;
	return has_bias(d) ? static_cast<uint32_t>(bits & -bits) : 1;
}

uint64_t shape_of(const description &d, const layout *const layouts[4])
{
	uint64_t shape = ((d.epilogue * 31 + d.compute) * 31 + d.a) * 31 + d.b;
	for (int i = 0; i < 4; i++)
		for (const uint64_t value :
		     {(uint64_t)layouts[i]->type, layouts[i]->rows, layouts[i]->columns,
		      (uint64_t)layouts[i]->stride, (uint64_t)layouts[i]->count, (uint64_t)layouts[i]->step})
			shape = shape * 1000003 + value;
	return shape;
}

float load(cudaDataType_t type, const char *from, size_t i)
{
	uint16_t half;
	float value;
	if (type == CUDA_R_32F) {
		memcpy(&value, from + 4 * i, sizeof(value));
		return value;
	}
	memcpy(&half, from + 2 * i, sizeof(half));
	return type == CUDA_R_16BF ? smalti_bf16_to_f32(half) : smalti_f16_to_f32(half);
}

void store(cudaDataType_t type, char *to, size_t i, float value)
{
	const uint16_t half = type == CUDA_R_16BF ? smalti_f32_to_bf16(value) : smalti_f32_to_f16(value);
	if (type == CUDA_R_32F)
		memcpy(to + 4 * i, &value, sizeof(value));
	else
		memcpy(to + 2 * i, &half, sizeof(half));
}

typedef float lanes __attribute__((vector_size(32)));

/* Rounds to 10 bits of mantissa. */
float to_tf32(float value)
{
	uint32_t bits;
	memcpy(&bits, &value, sizeof(bits));
	bits = (bits + 0xfff + (bits >> 13 & 1)) & ~UINT32_C(0x1fff);
	memcpy(&value, &bits, sizeof(bits));
	return value;
}

/* Returns the columns of a matrix, or its rows, in f32, each padded with zeros to whole vectors. */
std::vector<lanes> widened(const layout &l, bool of_rows, bool tf32, const char *from)
{
	const size_t lines = of_rows ? l.rows : l.columns, length = of_rows ? l.columns : l.rows;
	const size_t vectors = (length + 7) / 8;
	std::vector<lanes> wide(vectors * lines);
	std::vector<float> line(vectors * 8);
	for (size_t number = 0; number < lines; number++) {
		const size_t first = of_rows ? number : number * l.stride, step = of_rows ? l.stride : 1;
		if (l.type == CUDA_R_32F && step == 1)
			memcpy(line.data(), from + 4 * first, 4 * length);
		else
			for (size_t i = 0; i < length; i++)
				line[i] = load(l.type, from, first + i * step);
		for (size_t i = 0; tf32 && i < length; i++)
			line[i] = to_tf32(line[i]);
		memcpy(&wide[number * vectors], line.data(), vectors * sizeof(lanes));
	}
	return wide;
}

enum { AT_ONCE = 4 };

/* Multiplies some lines, which follow each other, with another line. */
void multiply_lines(const lanes *lines, const lanes *other, size_t vectors, int count,
		    float products[AT_ONCE])
{
	lanes sums[AT_ONCE] = {};
	if (count == AT_ONCE)
		for (size_t i = 0; i < vectors; i++)
			for (int line = 0; line < AT_ONCE; line++)
				sums[line] += lines[line * vectors + i] * other[i];
	else
		for (int line = 0; line < count; line++)
			for (size_t i = 0; i < vectors; i++)
				sums[line] += lines[line * vectors + i] * other[i];
	for (int line = 0; line < count; line++) {
		products[line] = 0;
		for (int i = 0; i < 8; i++)
			products[line] += sums[line][i];
	}
}

struct product {
	description what;
	layout a, b, c, r;
	float alpha, beta;
	int device;
	const void *a_at, *b_at, *c_at;
	void *r_at;

	void run() const
	{
		const char *user = "a product";
		const char *from = standin_at(c_at, device, c.bytes(), user);
		char *to = standin_at(r_at, device, r.bytes(), user);
		const char *bias =
		    has_bias(what) ? standin_at(what.bias, device, r.rows * r.element(), user) : nullptr;
		const char *left = standin_at(a_at, device, a.bytes(), user);
		const char *right = standin_at(b_at, device, b.bytes(), user);
		for (int32_t i = 0; i < r.count; i++)
			run_one(left + i * a.step * a.element(), right + i * b.step * b.element(),
				from + i * c.step * c.element(), to + i * r.step * r.element(), bias);
	}

	void run_integers(const char *a_from, const char *b_from, char *to) const
	{
		const auto left = reinterpret_cast<const int8_t *>(a_from),
			   right = reinterpret_cast<const int8_t *>(b_from);
		for (size_t column = 0; column < r.columns; column++)
			for (size_t row = 0; row < r.rows; row++) {
				int32_t sum = 0;
				for (size_t i = 0; i < a.rows; i++)
					sum += left[row * a.stride + i] * right[column * b.stride + i];
				int32_t *const at = reinterpret_cast<int32_t *>(to) + column * r.stride + row;
				*at = static_cast<int32_t>(alpha) * sum +
				      (beta != 0 ? static_cast<int32_t>(beta) * *at : 0);
			}
	}

	void run_one(const char *a_from, const char *b_from, const char *from, char *to,
		     const char *bias) const
	{
		if (a.type == CUDA_R_8I)
			return run_integers(a_from, b_from, to);
		const bool tf32 = what.compute == CUBLAS_COMPUTE_32F_FAST_TF32;
		const auto left = widened(a, what.a == CUBLAS_OP_N, tf32, a_from);
		const auto right = widened(b, what.b == CUBLAS_OP_T, tf32, b_from);
		const size_t inner = what.a == CUBLAS_OP_T ? a.rows : a.columns, vectors = (inner + 7) / 8;
		for (size_t column = 0; column < r.columns; column++)
			for (size_t row = 0; row < r.rows; row += AT_ONCE) {
				const int count = std::min<size_t>(AT_ONCE, r.rows - row);
				float products[AT_ONCE];
				multiply_lines(&left[row * vectors], &right[column * vectors], vectors, count,
					       products);
				for (int i = 0; i < count; i++)
					finish(alpha * products[i], column, row + i, from, to, bias);
			}
	}

	void finish(float value, size_t column, size_t row, const char *from, char *to,
		    const char *bias) const
	{
		if (beta != 0)
			value += beta * load(c.type, from, column * c.stride + row);
		store(r.type, to, column * r.stride + row, finished(value, bias, row));
	}

	float finished(float value, const char *bias, size_t row) const
	{
		if (bias)
			value += load(r.type, bias, row);
		if (has_gelu(what))
			value = 0.5f * value *
				(1 + tanhf(0.7978845608f * (value + 0.044715f * value * value * value)));
		return value;
	}
};
} // namespace

cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle)
{
	static int any;
	*handle = reinterpret_cast<cublasLtHandle_t>(&any);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t)
{
	return CUBLAS_STATUS_SUCCESS;
}

size_t cublasLtGetVersion(void)
{
	return CUBLAS_VERSION;
}

const char *cublasLtGetStatusString(cublasStatus_t status)
{
	return status == CUBLAS_STATUS_NOT_SUPPORTED ? "not supported" : "another status of the stand-in";
}

cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t compute,
					cudaDataType_t scale)
{
	*d = reinterpret_cast<cublasLtMatmulDesc_t>(new description{compute, scale});
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d)
{
	delete &of(d);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
					      cublasLtMatmulDescAttributes_t attribute, const void *value,
					      size_t bytes)
{
	switch (attribute) {
	case CUBLASLT_MATMUL_DESC_TRANSA:
		return set(&of(d).a, value, bytes);
	case CUBLASLT_MATMUL_DESC_TRANSB:
		return set(&of(d).b, value, bytes);
	case CUBLASLT_MATMUL_DESC_EPILOGUE:
		return set(&of(d).epilogue, value, bytes);
	case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
		return set(&of(d).bias, value, bytes);
	case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
		return set(&of(d).bias_type, value, bytes);
	default:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	}
}

cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type, uint64_t rows,
					  uint64_t columns, int64_t stride)
{
	for (const cudaDataType known : {CUDA_R_32F, CUDA_R_16F, CUDA_R_16BF, CUDA_R_8I, CUDA_R_32I})
		if (type == known) {
			*l =
			    reinterpret_cast<cublasLtMatrixLayout_t>(new layout{type, rows, columns, stride});
			return CUBLAS_STATUS_SUCCESS;
		}
	return CUBLAS_STATUS_NOT_SUPPORTED;
}

cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
						cublasLtMatrixLayoutAttribute_t attribute, const void *value,
						size_t bytes)
{
	switch (attribute) {
	case CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT:
		return set(&layout_of(l).count, value, bytes);
	case CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET:
		return set(&layout_of(l).step, value, bytes);
	default:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	}
}

cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l)
{
	delete &layout_of(l);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p)
{
	*p = reinterpret_cast<cublasLtMatmulPreference_t>(new preference);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p)
{
	delete reinterpret_cast<preference *>(p);
	return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
						    cublasLtMatmulPreferenceAttributes_t attribute,
						    const void *value, size_t bytes)
{
	preference *to = reinterpret_cast<preference *>(p);
	switch (attribute) {
	case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES:
		return set(&to->workspace, value, bytes);
	case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES:
		return set(&to->alignment[0], value, bytes);
	case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES:
		return set(&to->alignment[1], value, bytes);
	case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES:
		return set(&to->alignment[2], value, bytes);
	case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES:
		return set(&to->alignment[3], value, bytes);
	default:
		return CUBLAS_STATUS_NOT_SUPPORTED;
	}
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t d,
					      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
					      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t r,
					      cublasLtMatmulPreference_t p, int wanted,
					      cublasLtMatmulHeuristicResult_t results[], int *found)
{
	const layout *const layouts[] = {&layout_of(a), &layout_of(b), &layout_of(c), &layout_of(r)};
	const preference &limits = *reinterpret_cast<preference *>(p);
	choice choice = {shape_of(of(d), layouts), limits.workspace / 2, {}, bias_alignment(of(d))};
	*found = 0;
	if (wanted < 1 || !fits(of(d), *layouts[0], *layouts[1], *layouts[2], *layouts[3]))
		return CUBLAS_STATUS_INVALID_VALUE;
	if (!knows(of(d), *layouts[0], *layouts[1], *layouts[2], *layouts[3]))
		return CUBLAS_STATUS_NOT_SUPPORTED;
	for (int i = 0; i < 4; i++)
		choice.alignment[i] = limits.alignment[i];
	*found = 1;
	results[0] = {};
	memcpy(&results[0].algo, &choice, sizeof(choice));
	results[0].workspaceSize = choice.workspace;
	results[0].state = CUBLAS_STATUS_SUCCESS;
	return CUBLAS_STATUS_SUCCESS;
}

static void check_choice(const cublasLtMatmulAlgo_t *algorithm, const description &d, uint64_t shape,
			 const void *const at[4], size_t workspace)
{
	choice choice;
	memcpy(&choice, algorithm, sizeof(choice));
	if (choice.shape != shape)
		standin_refuse("a product has an algorithm that was chosen for another one");
	if (workspace < choice.workspace)
		standin_refuse("a product has a workspace of %zu bytes and needs %zu", workspace,
			       (size_t)choice.workspace);
	for (int i = 0; i < 4; i++)
		if (reinterpret_cast<uintptr_t>(at[i]) % choice.alignment[i] != 0)
			standin_refuse("matrix %c of a product is at %p, no multiple of %u", 'A' + i, at[i],
				       choice.alignment[i]);
	if (bias_alignment(d) < choice.bias_alignment)
		standin_refuse("the bias of a product is at %p, no multiple of %u", d.bias,
			       choice.bias_alignment);
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t d, const void *alpha, const void *a_at,
			      cublasLtMatrixLayout_t a, const void *b_at, cublasLtMatrixLayout_t b,
			      const void *beta, const void *c_at, cublasLtMatrixLayout_t c, void *r_at,
			      cublasLtMatrixLayout_t r, const cublasLtMatmulAlgo_t *algorithm,
			      void *workspace, size_t workspace_bytes, cudaStream_t handle)
{
	const std::lock_guard<std::recursive_mutex> turn(standin_turn);
	standin_stream *stream = reinterpret_cast<standin_stream *>(handle);
	const layout *const layouts[] = {&layout_of(a), &layout_of(b), &layout_of(c), &layout_of(r)};
	const void *const at[] = {a_at, b_at, c_at, r_at};
	if (standin_fails("product") || (stream && standin_lost("product", stream->device)))
		return CUBLAS_STATUS_EXECUTION_FAILED;
	if (!stream || !algorithm)
		standin_refuse("a product without a stream, or without an algorithm");
	check_choice(algorithm, of(d), shape_of(of(d), layouts), at, workspace_bytes);
	if (workspace_bytes)
		standin_at(workspace, stream->device, workspace_bytes, "a product's workspace");
	if (c_at == r_at && memcmp(layouts[2], layouts[3], sizeof(layout)) != 0)
		return CUBLAS_STATUS_INVALID_VALUE;
	const product product = {of(d),
				 *layouts[0],
				 *layouts[1],
				 *layouts[2],
				 *layouts[3],
				 factor_of(of(d), alpha),
				 factor_of(of(d), beta),
				 stream->device,
				 a_at,
				 b_at,
				 c_at,
				 r_at};
	standin_add_step(stream, [product] { product.run(); });
	return CUBLAS_STATUS_SUCCESS;
}
