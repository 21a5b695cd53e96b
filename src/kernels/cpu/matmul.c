/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/matmul.h"

#include "base/alloc.h"
#include "kernels/cpu/onednn.h"
#include "kernels/scratch.h"

/* The layout of packed weights is the one oneDNN prefers for this many rows; it is imposed on all. */
enum { TYPICAL_ROWS = 256 };

/* oneDNN counts with int in places. */
enum { LONGEST = INT32_MAX };

static int check_extents(int64_t rows, int64_t in, int64_t out, enum smalti_dtype compute,
			 struct smalti_error *error)
{
	if (rows < 0 || in < 1 || out < 1 || rows > LONGEST || in > LONGEST || out > LONGEST)
		return smalti_fail(error, SMALTI_EINVAL,
				   "matmul of %lld rows, %lld in, %lld out: expected 1 to %d",
				   (long long)rows, (long long)in, (long long)out, LONGEST);
	if (compute != SMALTI_F32 && compute != SMALTI_BF16)
		return smalti_fail(error, SMALTI_EINVAL, "matmul computes in f32 or bf16, not %s",
				   smalti_dtype_name(compute));
	return 0;
}

/* What oneDNN is asked for. */
struct product {
	int64_t rows, in, out;
	enum smalti_dtype operands, result;
	enum smalti_epilogue epilogue;
	bool bias;
};

/* y = f(z) as attributes; z and y are in registers then. */
static dnnl_status_t add_epilogue(const struct product *product, dnnl_post_ops_t ops)
{
	dnnl_memory_desc_t operand;
	dnnl_dims_t gate = {1, product->out}, full = {product->rows, product->out};
	dnnl_status_t status = dnnl_success;
	switch (product->epilogue) {
	case SMALTI_EPILOGUE_GELU:
		return dnnl_post_ops_append_eltwise(ops, 1.f, dnnl_eltwise_gelu_tanh, 0.f, 0.f);
	case SMALTI_EPILOGUE_SILU:
		return dnnl_post_ops_append_eltwise(ops, 1.f, dnnl_eltwise_swish, 1.f, 0.f);
	case SMALTI_EPILOGUE_ADD:
		return dnnl_post_ops_append_sum(ops, 1.f);
	case SMALTI_EPILOGUE_GATE_ADD:
		status = dnnl_memory_desc_init_by_tag(&operand, 2, gate, dnnl_f32, dnnl_ab);
		if (!status)
			status = dnnl_post_ops_append_binary(ops, dnnl_binary_mul, &operand);
		return status ? status : dnnl_post_ops_append_sum(ops, 1.f);
	case SMALTI_EPILOGUE_MULTIPLY:
		status = dnnl_memory_desc_init_by_tag(&operand, 2, full, smalti_onednn_type(product->result),
						      dnnl_ab);
		return status ? status : dnnl_post_ops_append_binary(ops, dnnl_binary_mul, &operand);
	default:
		return dnnl_success;
	}
}

static dnnl_status_t set_epilogue(const struct product *product, dnnl_primitive_attr_t attributes)
{
	dnnl_post_ops_t ops;
	dnnl_status_t status = dnnl_post_ops_create(&ops);
	if (status)
		return status;
	status = add_epilogue(product, ops);
	if (!status)
		status = dnnl_primitive_attr_set_post_ops(attributes, ops);
	dnnl_post_ops_destroy(ops);
	return status;
}

/* The product with weights in the layout `weights`, or in one that oneDNN chooses when NULL. */
static dnnl_status_t describe_product(const struct product *product, const dnnl_memory_desc_t *weights,
				      dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
				      dnnl_primitive_desc_t *description)
{
	dnnl_dims_t x_dims = {product->rows, product->in}, w_dims = {product->in, product->out};
	dnnl_dims_t y_dims = {product->rows, product->out}, bias_dims = {1, product->out};
	dnnl_data_type_t operands = smalti_onednn_type(product->operands);
	dnnl_memory_desc_t x, w, y, bias;
	dnnl_matmul_desc_t matmul;
	dnnl_status_t status = dnnl_memory_desc_init_by_tag(&x, 2, x_dims, operands, dnnl_ab);
	if (!status)
		status = dnnl_memory_desc_init_by_tag(&w, 2, w_dims, operands, dnnl_format_tag_any);
	if (!status)
		status = dnnl_memory_desc_init_by_tag(&bias, 2, bias_dims, dnnl_f32, dnnl_ab);
	if (!status)
		status =
		    dnnl_memory_desc_init_by_tag(&y, 2, y_dims, smalti_onednn_type(product->result), dnnl_ab);
	if (!status)
		status = dnnl_matmul_desc_init(&matmul, &x, weights ? weights : &w,
					       product->bias ? &bias : NULL, &y);
	if (!status)
		status = dnnl_primitive_desc_create(description, &matmul, attributes, engine, NULL);
	return status;
}

static int packed_layout(int64_t in, int64_t out, enum smalti_dtype compute, dnnl_memory_desc_t *layout,
			 struct smalti_error *error)
{
	if (check_extents(0, in, out, compute, error))
		return -1;
	dnnl_engine_t engine = smalti_onednn_engine(error);
	if (!engine)
		return -1;
	struct product typical = {TYPICAL_ROWS,         in,  out, smalti_onednn_product(compute), SMALTI_F32,
				  SMALTI_EPILOGUE_NONE, true};
	dnnl_primitive_desc_t description = NULL;
	if (smalti_onednn_check(describe_product(&typical, NULL, engine, NULL, &description),
				"no layout for a matmul's weights", error))
		return -1;
	*layout = *dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0);
	dnnl_primitive_desc_destroy(description);
	return 0;
}

static int describe(const void *context, dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
		    dnnl_primitive_desc_t *description, struct smalti_error *error)
{
	const struct product *product = context;
	dnnl_memory_desc_t weights;
	if (packed_layout(product->in, product->out, product->operands, &weights, error))
		return -1;
	dnnl_status_t status = set_epilogue(product, attributes);
	if (!status)
		status = describe_product(product, &weights, engine, attributes, description);
	return smalti_onednn_check(status, "no such matmul", error);
}

static int multiply(const struct product *product, const void *x, const void *packed, const float *bias,
		    const void *operand, void *y, struct smalti_error *error)
{
	struct smalti_onednn_key key = {{'m', product->rows, product->in, product->out,
					 (int64_t)product->operands, (int64_t)product->result,
					 (int64_t)product->epilogue, product->bias}};
	struct smalti_onednn_argument arguments[SMALTI_ONEDNN_ARGUMENTS] = {
	    {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, packed}, {DNNL_ARG_DST, y}};
	int count = 3;
	if (product->bias)
		arguments[count++] = (struct smalti_onednn_argument){DNNL_ARG_BIAS, bias};
	if (product->epilogue == SMALTI_EPILOGUE_GATE_ADD || product->epilogue == SMALTI_EPILOGUE_MULTIPLY)
		arguments[count++] = (struct smalti_onednn_argument){
		    DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, operand};
	return smalti_onednn_run(&key, describe, product, arguments, count, error);
}

/* y = bf16(z), or bf16(z ⊙ operand). */
static void narrow(int64_t count, const float *z, const uint16_t *operand, uint16_t *y)
{
	if (!operand) {
		smalti_narrow(SMALTI_BF16, z, count, y);
		return;
	}
	for (int64_t i = 0; i < count; i++)
		y[i] = smalti_f32_to_bf16(z[i] * smalti_bf16_to_f32(operand[i]));
}

/* Where oneDNN lacks the mix of dtypes: the operands widened, the result narrowed, in working memory. */
static int multiply_wide(struct product product, const void *x, const void *packed, const float *bias,
			 const void *operand, void *y, struct smalti_error *error)
{
	bool widen = product.operands == SMALTI_BF16, narrowed = product.result == SMALTI_BF16;
	int64_t x_count = widen ? product.rows : 0, y_count = narrowed ? product.rows : 0, bytes = 4;
	if (!smalti_multiply(&x_count, product.in) || !smalti_multiply(&y_count, product.out) ||
	    x_count > INT64_MAX - 16 - y_count ||
	    !smalti_multiply(&bytes, (x_count + 15) / 16 * 16 + y_count))
		return smalti_fail(error, SMALTI_ENOMEM, "a matmul's operands do not fit in memory");
	float *wide_x = smalti_scratch(SMALTI_SCRATCH_CONVERT, bytes, error);
	if (!wide_x)
		return -1;
	float *wide_y = wide_x + (x_count + 15) / 16 * 16;
	if (widen)
		smalti_widen(SMALTI_BF16, x, x_count, wide_x);
	bool multiplied = narrowed && product.epilogue == SMALTI_EPILOGUE_MULTIPLY;
	if (multiplied)
		product.epilogue = SMALTI_EPILOGUE_NONE;
	product.operands = product.result = SMALTI_F32;
	if (multiply(&product, widen ? wide_x : x, packed, bias, operand, narrowed ? wide_y : y, error))
		return -1;
	if (narrowed)
		narrow(y_count, wide_y, multiplied ? operand : NULL, y);
	return 0;
}

int64_t smalti_matmul_packed_bytes(int64_t in, int64_t out, enum smalti_dtype compute,
				   struct smalti_error *error)
{
	dnnl_memory_desc_t layout;
	if (packed_layout(in, out, compute, &layout, error))
		return -1;
	return (int64_t)dnnl_memory_desc_get_size(&layout);
}

int smalti_matmul_pack(int64_t in, int64_t out, enum smalti_dtype compute,
		       const struct smalti_weight_part *parts, int part_count, void *packed,
		       struct smalti_error *error)
{
	dnnl_memory_desc_t layout;
	if (packed_layout(in, out, compute, &layout, error))
		return -1;
	const dnnl_dims_t plain = {1, in};
	return smalti_onednn_pack(&layout, 1, plain, compute, parts, part_count, packed, error);
}

int smalti_matmul(const struct smalti_matmul *matmul, const void *x, const void *packed, const float *bias,
		  const void *operand, void *y, struct smalti_error *error)
{
	if (check_extents(matmul->rows, matmul->in, matmul->out, matmul->compute, error))
		return -1;
	bool added = matmul->epilogue == SMALTI_EPILOGUE_ADD || matmul->epilogue == SMALTI_EPILOGUE_GATE_ADD;
	if (matmul->result == SMALTI_F16 || (added && matmul->result != SMALTI_F32))
		return smalti_fail(error, SMALTI_EINVAL, "a matmul's result cannot be %s%s",
				   smalti_dtype_name(matmul->result), added ? " where it is added" : "");
	if (!matmul->rows)
		return 0;
	struct product product = {matmul->rows,   matmul->in,       matmul->out, matmul->compute,
				  matmul->result, matmul->epilogue, bias != NULL};
	bool direct = smalti_onednn_product(matmul->compute) == matmul->compute &&
		      (matmul->result == SMALTI_F32 || matmul->compute == SMALTI_BF16);
	return direct ? multiply(&product, x, packed, bias, operand, y, error)
		      : multiply_wide(product, x, packed, bias, operand, y, error);
}
