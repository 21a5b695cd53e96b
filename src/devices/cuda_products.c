/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products, by cuBLASLt. The algorithm for a shape is kept for later products. */
#include "devices/cuda.h"

#include <xxhash.h>

enum {
	KEPT = 1024, /* shapes, one for each hash */
	ALIGNMENT = 256,
};

/* Everything that a choice depends on. */
struct shape {
	int64_t rows, in, out, x_stride, w_stride, y_stride, dtype, result, biased, gelu, turned_x, turned_w;
	int64_t count, x_step, w_step, y_step;
	uint64_t x_alignment, w_alignment, y_alignment, bias_alignment;
};

/* cuBLASLt's matrices are column-major. So it computes yᵀ[out, rows] of w, transposed, and xᵀ, as they lie in
 * memory. An operand that is turned has the other transposition. */
struct smalti_cuda_product {
	struct shape shape;
	cublasLtMatmulDesc_t operation; /* NULL: the slot is empty */
	cublasLtMatrixLayout_t w, x, y;
	cublasLtMatmulAlgo_t algorithm;
};

static const struct {
	cudaDataType_t type;
	int bytes;
} types[] = {
    [SMALTI_F32] = {CUDA_R_32F, 4},
    [SMALTI_F16] = {CUDA_R_16F, 2},
    [SMALTI_BF16] = {CUDA_R_16BF, 2},
    [SMALTI_I8] = {CUDA_R_8I, 1},
};

static int fail(cublasStatus_t status, const struct shape *shape, struct smalti_error *error)
{
	return smalti_fail(error, status == CUBLAS_STATUS_ALLOC_FAILED ? SMALTI_ENOMEM : SMALTI_ENODEV,
			   "product of %lld x %lld x %lld: cuBLASLt says '%s' (%d)", (long long)shape->rows,
			   (long long)shape->in, (long long)shape->out, cublasLtGetStatusString(status),
			   (int)status);
}

static void forget(struct smalti_cuda_product *p)
{
	if (p->w)
		cublasLtMatrixLayoutDestroy(p->w);
	if (p->x)
		cublasLtMatrixLayoutDestroy(p->x);
	if (p->y)
		cublasLtMatrixLayoutDestroy(p->y);
	if (p->operation)
		cublasLtMatmulDescDestroy(p->operation);
	*p = (struct smalti_cuda_product){.operation = NULL};
}

static cublasStatus_t set_epilogue(cublasLtMatmulDesc_t operation, const struct shape *s)
{
	static const cublasLtEpilogue_t epilogues[2][2] = {
	    {CUBLASLT_EPILOGUE_DEFAULT, CUBLASLT_EPILOGUE_GELU},
	    {CUBLASLT_EPILOGUE_BIAS, CUBLASLT_EPILOGUE_GELU_BIAS}};
	const cublasLtEpilogue_t epilogue = epilogues[s->biased][s->gelu];
	const cudaDataType_t type = types[s->result].type;
	const cublasStatus_t status = cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
								     &epilogue, sizeof(epilogue));
	if (status || !s->biased)
		return status;
	return cublasLtMatmulDescSetAttribute(operation, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type,
					      sizeof(type));
}

/* Describes rows [rows, columns] as they lie in memory. */
static cublasStatus_t lay_out(cublasLtMatrixLayout_t *layout, cudaDataType_t type, int64_t rows,
			      int64_t columns, int64_t stride, int64_t count, int64_t step)
{
	const int32_t matrices = (int32_t)count;
	cublasStatus_t status =
	    cublasLtMatrixLayoutCreate(layout, type, (uint64_t)columns, (uint64_t)rows, stride);
	if (!status && count > 1)
		status = cublasLtMatrixLayoutSetAttribute(*layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT,
							  &matrices, sizeof(matrices));
	if (!status && count > 1)
		status = cublasLtMatrixLayoutSetAttribute(
		    *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &step, sizeof(step));
	return status;
}

/* Describes a matrix [rows, in], which may be turned. */
static cublasStatus_t lay_out_operand(cublasLtMatrixLayout_t *layout, const struct shape *s, int64_t rows,
				      bool turned, int64_t stride, int64_t step)
{
	return lay_out(layout, types[s->dtype].type, turned ? s->in : rows, turned ? rows : s->in, stride,
		       s->count, step);
}

static cublasStatus_t set_turned(cublasLtMatmulDesc_t operation, cublasLtMatmulDescAttributes_t which,
				 bool transposed)
{
	const cublasOperation_t value = transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
	return cublasLtMatmulDescSetAttribute(operation, which, &value, sizeof(value));
}

static cublasStatus_t describe(struct smalti_cuda_product *p, bool tf32)
{
	const struct shape *s = &p->shape;
	const bool integers = s->dtype == SMALTI_I8;
	const cublasComputeType_t of_floats =
	    tf32 && s->dtype == SMALTI_F32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
	cublasStatus_t status = cublasLtMatmulDescCreate(
	    &p->operation, integers ? CUBLAS_COMPUTE_32I : of_floats, integers ? CUDA_R_32I : CUDA_R_32F);
	if (!status)
		status = set_turned(p->operation, CUBLASLT_MATMUL_DESC_TRANSA, !s->turned_w);
	if (!status)
		status = set_turned(p->operation, CUBLASLT_MATMUL_DESC_TRANSB, s->turned_x);
	if (!status)
		status = set_epilogue(p->operation, s);
	if (!status)
		status = lay_out_operand(&p->w, s, s->out, s->turned_w, s->w_stride, s->w_step);
	if (!status)
		status = lay_out_operand(&p->x, s, s->rows, s->turned_x, s->x_stride, s->x_step);
	if (!status)
		status = lay_out(&p->y, integers ? CUDA_R_32I : types[s->result].type, s->rows, s->out,
				 s->y_stride, s->count, s->y_step);
	return status;
}

static cublasStatus_t prefer(const struct smalti_cuda_device *cuda, const struct shape *s,
			     cublasLtMatmulPreference_t preference)
{
	const struct {
		cublasLtMatmulPreferenceAttributes_t name;
		uint32_t bytes;
	} alignments[] = {
	    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, (uint32_t)s->w_alignment},
	    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, (uint32_t)s->x_alignment},
	    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, (uint32_t)s->y_alignment},
	    {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, (uint32_t)s->y_alignment},
	};
	const size_t workspace = (size_t)smalti_cuda_workspace_bytes(cuda);
	cublasStatus_t status = cublasLtMatmulPreferenceSetAttribute(
	    preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &workspace, sizeof(workspace));
	for (size_t i = 0; i < sizeof(alignments) / sizeof(alignments[0]) && !status; i++)
		status = cublasLtMatmulPreferenceSetAttribute(
		    preference, alignments[i].name, &alignments[i].bytes, sizeof(alignments[i].bytes));
	return status;
}

static cublasStatus_t choose(const struct smalti_cuda_device *cuda, struct smalti_cuda_product *p)
{
	cublasLtMatmulPreference_t preference = NULL;
	cublasLtMatmulHeuristicResult_t result;
	int found = 0;
	cublasStatus_t status = cublasLtMatmulPreferenceCreate(&preference);
	if (status)
		return status;
	status = prefer(cuda, &p->shape, preference);
	if (!status)
		status = cublasLtMatmulAlgoGetHeuristic(cuda->cublas, p->operation, p->w, p->x, p->y, p->y,
							preference, 1, &result, &found);
	cublasLtMatmulPreferenceDestroy(preference);
	if (status)
		return status;
	p->algorithm = result.algo;
	return found ? result.state : CUBLAS_STATUS_NOT_SUPPORTED;
}

static cublasStatus_t set_bias(const struct smalti_cuda_product *p, const char *bias)
{
	if (!p->shape.biased)
		return CUBLAS_STATUS_SUCCESS;
	return cublasLtMatmulDescSetAttribute(p->operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias,
					      sizeof(bias));
}

/* Returns the shape's slot, filled, for this bias; NULL with an error. */
static const struct smalti_cuda_product *find(struct smalti_cuda_device *cuda, const struct shape *shape,
					      const char *bias, struct smalti_error *error)
{
	struct smalti_cuda_product *p = &cuda->products[XXH32(shape, sizeof(*shape), 0) % KEPT];
	cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
	const bool known = p->operation && memcmp(&p->shape, shape, sizeof(*shape)) == 0;
	if (!known) {
		forget(p);
		p->shape = *shape;
		status = describe(p, cuda->device.tf32);
	}
	if (!status)
		status = set_bias(p, bias);
	if (!status && !known)
		status = choose(cuda, p);
	if (!status)
		return p;
	fail(status, shape, error);
	forget(p);
	return NULL;
}

static char *address(const struct smalti_device_memory *memory, int64_t first, enum smalti_dtype dtype)
{
	return (char *)memory->memory + first * types[dtype].bytes;
}

static uint64_t alignment_of(const char *address)
{
	const uint64_t bits = (uint64_t)(uintptr_t)address | ALIGNMENT;
	return bits & -bits;
}

/* Tells whether cuBLASLt makes a product of integers: nothing is done with the sums, and the rows of all
 * operands begin at multiples of four elements. */
static bool makes_integers(const struct smalti_device_product *p)
{
	const int64_t fours[] = {p->in,      p->out,      p->x_first, p->x_stride,
				 p->w_first, p->w_stride, p->y_stride};
	for (size_t i = 0; i < COUNT_OF(fours); i++)
		if (fours[i] % 4 != 0)
			return false;
	return !p->bias && !p->gelu && !p->adds && !p->turned_x && !p->turned_w;
}

/* Tells whether cuBLASLt makes it. A bias has y's type; y is f32 or has the operands' type. Products of
 * vectors take no bias; PyTorch excludes them, too. */
bool smalti_cuda_makes(const struct smalti_device_product *product)
{
	const bool finishes = product->bias || product->gelu;
	if (product->dtype == SMALTI_I8)
		return makes_integers(product);
	if (product->bias && product->bias_dtype != product->result)
		return false;
	return (product->result == SMALTI_F32 || product->result == product->dtype) &&
	       (!finishes || (product->in > 1 && product->out > 1));
}

int smalti_cuda_product(struct smalti_device *device, const struct smalti_device_product *p,
			const struct smalti_device_memory *x, const struct smalti_device_memory *w,
			const struct smalti_device_memory *y, struct smalti_error *error)
{
	struct smalti_cuda_device *cuda = (struct smalti_cuda_device *)device;
	const char *x_at = address(x, p->x_first, p->dtype), *w_at = address(w, p->w_first, p->dtype);
	const char *bias = p->bias ? address(p->bias, p->bias_first, p->bias_dtype) : NULL;
	char *y_at = address(y, p->y_first, p->result);
	const struct shape shape = {.rows = p->rows,
				    .in = p->in,
				    .out = p->out,
				    .x_stride = p->x_stride,
				    .w_stride = p->w_stride,
				    .y_stride = p->y_stride,
				    .dtype = p->dtype,
				    .result = p->result,
				    .biased = p->bias != NULL,
				    .gelu = p->gelu,
				    .turned_x = p->turned_x,
				    .turned_w = p->turned_w,
				    .count = p->count,
				    .x_step = p->x_step,
				    .w_step = p->w_step,
				    .y_step = p->y_step,
				    .x_alignment = alignment_of(x_at),
				    .w_alignment = alignment_of(w_at),
				    .y_alignment = alignment_of(y_at),
				    .bias_alignment = bias ? alignment_of(bias) : 0};
	const float one = 1, kept = p->adds ? 1 : 0;
	const int32_t once = 1, none = 0;
	const bool integers = p->dtype == SMALTI_I8;
	const struct smalti_cuda_product *product = find(cuda, &shape, bias, error);
	void *workspace = product ? smalti_cuda_workspace(cuda, error) : NULL;
	if (!workspace)
		return -1;
	const cublasStatus_t status =
	    cublasLtMatmul(cuda->cublas, product->operation, integers ? (const void *)&once : &one, w_at,
			   product->w, x_at, product->x, integers ? (const void *)&none : &kept, y_at,
			   product->y, y_at, product->y, &product->algorithm, workspace,
			   (size_t)smalti_cuda_workspace_bytes(cuda), smalti_cuda_stream(cuda));
	return status ? fail(status, &shape, error) : 0;
}

int smalti_cuda_products_open(struct smalti_cuda_device *cuda, struct smalti_error *error)
{
	cuda->products = smalti_calloc(KEPT, sizeof(*cuda->products), error);
	if (!cuda->products)
		return -1;
	const cublasStatus_t status = cublasLtCreate(&cuda->cublas);
	if (!status)
		return 0;
	return smalti_fail(error, SMALTI_ENODEV, "cuBLASLt does not start on CUDA device %d: '%s' (%d)",
			   cuda->number, cublasLtGetStatusString(status), (int)status);
}

void smalti_cuda_products_close(struct smalti_cuda_device *cuda)
{
	for (int i = 0; cuda->products && i < KEPT; i++)
		forget(&cuda->products[i]);
	free(cuda->products);
	if (cuda->cublas)
		cublasLtDestroy(cuda->cublas);
}
