/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/cpu/product.h"

enum { TYPICAL_ROWS = 256 };

static bool has_operand(enum smalti_epilogue epilogue)
{
	return epilogue == SMALTI_EPILOGUE_GATE_ADD || epilogue == SMALTI_EPILOGUE_MULTIPLY;
}

static dnnl_status_t add_multiplication(const struct smalti_product *product, dnnl_post_ops_t ops)
{
	bool gate = product->epilogue == SMALTI_EPILOGUE_GATE_ADD;
	dnnl_dims_t dims = {gate ? 1 : product->rows, product->out};
	dnnl_data_type_t type = smalti_onednn_type(gate ? SMALTI_F32 : product->result);
	smalti_layout operand;
	dnnl_status_t status = smalti_layout_by_tag(&operand, 2, dims, type, dnnl_ab);
	if (!status)
		status = dnnl_post_ops_append_binary(ops, dnnl_binary_mul, operand);
	smalti_layout_free(operand);
	return status;
}

static dnnl_status_t add_epilogue(const struct smalti_product *product, dnnl_post_ops_t ops)
{
	dnnl_status_t status = dnnl_success;
	if (product->epilogue == SMALTI_EPILOGUE_GELU)
		status = smalti_onednn_append_eltwise(ops, dnnl_eltwise_gelu_tanh, 0.f);
	if (product->epilogue == SMALTI_EPILOGUE_SILU)
		status = smalti_onednn_append_eltwise(ops, dnnl_eltwise_swish, 1.f);
	if (has_operand(product->epilogue))
		status = add_multiplication(product, ops);
	if (!status &&
	    (product->epilogue == SMALTI_EPILOGUE_ADD || product->epilogue == SMALTI_EPILOGUE_GATE_ADD))
		status = smalti_onednn_append_sum(ops);
	return status;
}

static dnnl_status_t set_epilogue(const struct smalti_product *product, dnnl_primitive_attr_t attributes)
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

/* Describes the product with weights in the layout `weights`; NULL: oneDNN chooses one. */
static dnnl_status_t describe_product(const struct smalti_product *product, smalti_const_layout weights,
				      dnnl_engine_t engine, const_dnnl_primitive_attr_t attributes,
				      dnnl_primitive_desc_t *description)
{
	dnnl_dims_t x_dims = {product->rows, product->in}, w_dims = {product->in, product->out};
	dnnl_dims_t y_dims = {product->rows, product->out};
	dnnl_dims_t bias_dims = {1, product->out};
	dnnl_data_type_t operands = smalti_onednn_type(product->operands);
	dnnl_data_type_t result = smalti_onednn_type(product->result);
	smalti_layout x = NULL, any = NULL, y = NULL, bias = NULL;
	dnnl_status_t status = smalti_layout_by_tag(&x, 2, x_dims, operands, dnnl_ab);
	if (!status)
		status = smalti_layout_by_tag(&any, 2, w_dims, operands, dnnl_format_tag_any);
	if (!status && product->bias)
		status = smalti_layout_by_tag(&bias, 2, bias_dims, dnnl_f32, dnnl_ab);
	if (!status)
		status = smalti_layout_by_tag(&y, 2, y_dims, result, dnnl_ab);
	if (!status)
		status = smalti_onednn_matmul(description, engine, x, weights ? weights : any, bias, y,
					      attributes);
	smalti_layout_free(x);
	smalti_layout_free(any);
	smalti_layout_free(bias);
	smalti_layout_free(y);
	return status;
}

smalti_layout smalti_product_layout(int64_t in, int64_t out, enum smalti_dtype operands,
				    struct smalti_error *error)
{
	ALONE_IN_ONEDNN;
	dnnl_engine_t engine = smalti_onednn_engine(error);
	if (!engine)
		return NULL;
	const struct smalti_product typical = {
	    .rows = TYPICAL_ROWS, .in = in, .out = out, .operands = operands};
	smalti_layout layout = NULL;
	dnnl_primitive_desc_t description = NULL;
	dnnl_status_t status = describe_product(&typical, NULL, engine, NULL, &description);
	if (!status)
		status = smalti_layout_copy(
		    &layout, dnnl_primitive_desc_query_md(description, dnnl_query_weights_md, 0));
	dnnl_primitive_desc_destroy(description);
	smalti_onednn_check(status, "no layout for a matmul's weights", error);
	return layout;
}

static int describe(const void *context, dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
		    dnnl_primitive_desc_t *description, struct smalti_error *error)
{
	const struct smalti_product *product = context;
	smalti_layout weights = smalti_product_layout(product->in, product->out, product->operands, error);
	if (!weights)
		return -1;
	dnnl_status_t status = set_epilogue(product, attributes);
	if (!status)
		status = describe_product(product, weights, engine, attributes, description);
	smalti_layout_free(weights);
	return smalti_onednn_check(status, "no such matmul", error);
}

int smalti_product_run(const struct smalti_product *product, const void *x, const void *weights,
		       const float *bias, const void *operand, void *y, struct smalti_error *error)
{
	const struct smalti_onednn_key key = {{'m', product->rows, product->in, product->out,
					       (int64_t)product->operands, (int64_t)product->result,
					       (int64_t)product->epilogue, product->bias}};
	struct smalti_onednn_argument arguments[SMALTI_ONEDNN_ARGUMENTS] = {
	    {DNNL_ARG_SRC, x}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, y}};
	int count = 3;
	if (product->bias)
		arguments[count++] = (struct smalti_onednn_argument){DNNL_ARG_BIAS, bias};
	if (has_operand(product->epilogue))
		arguments[count++] = (struct smalti_onednn_argument){
		    DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1, operand};
	return smalti_onednn_run(&key, describe, product, arguments, count, error);
}
