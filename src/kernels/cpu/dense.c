/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/backward.h"
#include "kernels/cpu/onednn.h"
#include "kernels/elementwise.h"

enum smalti_dtype smalti_product_dtype(enum smalti_dtype compute)
{
	return smalti_onednn_operands(compute);
}

void smalti_operand(int64_t count, enum smalti_dtype from, const void *x, enum smalti_dtype compute,
		    enum smalti_dtype stored, void *y)
{
	enum { PIECE = 1024 };
	uint16_t narrow[PIECE];
	if (from != SMALTI_F32 || compute == stored) {
		smalti_convert(count, from, x, stored, y);
		return;
	}
	for (int64_t at = 0; at < count; at += PIECE) {
		const int64_t piece = smalti_min(PIECE, count - at);
		smalti_convert(piece, from, (const float *)x + at, compute, narrow);
		smalti_convert(piece, compute, narrow, stored, (char *)y + at * smalti_dtype_bytes(stored));
	}
}

static dnnl_status_t describe_matrices(const struct smalti_dense *d, dnnl_engine_t engine,
				       const_dnnl_primitive_attr_t attributes,
				       dnnl_primitive_desc_t *description)
{
	const dnnl_data_type_t type = smalti_onednn_type(d->dtype);
	const struct {
		dnnl_dims_t dims;
		dnnl_data_type_t type;
		dnnl_format_tag_t tag;
		bool there;
	} matrices[] = {
	    {{d->rows, d->inner}, type, d->turned_a ? dnnl_ba : dnnl_ab, true},
	    {{d->inner, d->columns}, type, d->turned_b ? dnnl_ba : dnnl_ab, true},
	    {{1, d->columns}, dnnl_f32, dnnl_ab, d->bias},
	    {{d->rows, d->columns}, smalti_onednn_type(d->result), dnnl_ab, true},
	};
	smalti_layout layout[COUNT_OF(matrices)] = {NULL};
	dnnl_status_t status = dnnl_success;
	for (size_t i = 0; i < COUNT_OF(matrices) && !status; i++)
		if (matrices[i].there)
			status = smalti_layout_by_tag(&layout[i], 2, matrices[i].dims, matrices[i].type,
						      matrices[i].tag);
	if (!status)
		status = smalti_onednn_matmul(description, engine, layout[0], layout[1], layout[2], layout[3],
					      attributes);
	for (size_t i = 0; i < COUNT_OF(matrices); i++)
		smalti_layout_free(layout[i]);
	return status;
}

static int describe(const void *context, dnnl_engine_t engine, dnnl_primitive_attr_t attributes,
		    dnnl_primitive_desc_t *description, struct smalti_error *error)
{
	const struct smalti_dense *dense = context;
	dnnl_status_t status = dense->add ? smalti_onednn_add_to_result(attributes) : dnnl_success;
	if (!status)
		status = describe_matrices(dense, engine, attributes, description);
	return smalti_onednn_check(status, "no such product", error);
}

int smalti_dense(const struct smalti_dense *dense, const void *a, const void *b, void *y,
		 struct smalti_error *error)
{
	const struct smalti_onednn_key key = {
	    {'d', dense->rows, dense->inner, dense->columns, dense->turned_a, dense->turned_b, dense->add,
	     (int64_t)dense->dtype, (int64_t)dense->result, dense->bias != NULL}};
	const struct smalti_onednn_argument arguments[] = {
	    {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, y}, {DNNL_ARG_BIAS, dense->bias}};
	return smalti_onednn_run(&key, describe, dense, arguments, COUNT_OF(arguments) - !dense->bias, error);
}
