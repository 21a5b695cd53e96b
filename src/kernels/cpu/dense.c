/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/backward.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/onednn.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"

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

/* An operand as the library multiplies it: in scratch, where it is not so already. */
static const void *rounded(enum smalti_scratch_use use, int64_t count, enum smalti_dtype dtype,
			   enum smalti_dtype compute, const void *x, struct smalti_error *error)
{
	const enum smalti_dtype stored = smalti_product_dtype(compute);
	if (dtype == stored && compute == stored)
		return x;
	void *y = smalti_scratch(use, count * smalti_dtype_bytes(stored), error);
	if (y)
		smalti_operand(count, dtype, x, compute, stored, y);
	return y;
}

static dnnl_status_t describe_matrices(const struct smalti_dense *d, dnnl_engine_t engine,
				       const_dnnl_primitive_attr_t attributes,
				       dnnl_primitive_desc_t *description)
{
	const struct {
		dnnl_dims_t dims;
		enum smalti_dtype dtype;
		dnnl_format_tag_t tag;
		bool there;
	} matrices[] = {
	    {{d->rows, d->inner}, d->a_dtype, d->turned_a ? dnnl_ba : dnnl_ab, true},
	    {{d->inner, d->columns}, d->b_dtype, d->turned_b ? dnnl_ba : dnnl_ab, true},
	    {{1, d->columns}, SMALTI_F32, dnnl_ab, d->bias},
	    {{d->rows, d->columns}, d->result, dnnl_ab, true},
	};
	smalti_layout layout[COUNT_OF(matrices)] = {NULL};
	dnnl_status_t status = dnnl_success;
	for (size_t i = 0; i < COUNT_OF(matrices) && !status; i++)
		if (matrices[i].there)
			status =
			    smalti_layout_by_tag(&layout[i], 2, matrices[i].dims, dnnl_f32, matrices[i].tag);
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

static int multiply_in_place(const struct smalti_dense *d, const void *a, const void *b, void *y,
			     struct smalti_error *error)
{
	const struct smalti_onednn_key key = {{'d', d->rows, d->inner, d->columns, d->turned_a, d->turned_b,
					       d->add, (int64_t)d->compute, (int64_t)d->result,
					       d->bias != NULL}};
	const struct smalti_onednn_argument arguments[] = {
	    {DNNL_ARG_SRC, a}, {DNNL_ARG_WEIGHTS, b}, {DNNL_ARG_DST, y}, {DNNL_ARG_BIAS, d->bias}};
	return smalti_onednn_run(&key, describe, d, arguments, COUNT_OF(arguments) - !d->bias, error);
}

static void begin_with_bias(const struct smalti_dense *d, float *y)
{
	for (int64_t row = 0; row < d->rows; row++, y += d->columns)
		if (d->add)
			smalti_add(d->columns, y, d->bias, y);
		else
			memcpy(y, d->bias, (size_t)d->columns * sizeof(*y));
}

static int multiply_copies(const struct smalti_dense *d, const float *a, const float *b, float *y,
			   struct smalti_error *error)
{
	if (!smalti_onednn_stream(error)) /* tells OpenMP that this thread works alone */
		return -1;
	if (d->bias)
		begin_with_bias(d, y);
	const dnnl_status_t status =
	    dnnl_sgemm(d->turned_a ? 'T' : 'N', d->turned_b ? 'T' : 'N', d->rows, d->columns, d->inner, 1, a,
		       d->turned_a ? d->rows : d->inner, b, d->turned_b ? d->inner : d->columns,
		       d->add || d->bias ? 1 : 0, y, d->columns);
	return smalti_onednn_check(status, "a product failed", error);
}

/* oneDNN's matmul reads its operands where they lie; its BLAS copies them first, which pays in large
 * products: on Sapphire Rapids, with weights that no cache held, it took 0.7 times as long. Where there is no
 * AMX matmul reached 82 % of the peak (EPYC). */
static bool is_for_blas(const struct smalti_dense *d)
{
	const double large = 1 << 26; /* operations */
	return smalti_isa() >= SMALTI_ISA_AMX && d->compute == SMALTI_F32 && d->result == SMALTI_F32 &&
	       2. * (double)d->rows * (double)d->inner * (double)d->columns >= large;
}

/* The library's result is f32 or what it multiplies. */
static int multiply_by_library(const struct smalti_dense *dense, const void *a, const void *b, void *y,
			       struct smalti_error *error)
{
	const enum smalti_dtype stored = smalti_product_dtype(dense->compute);
	const bool converted = dense->result != SMALTI_F32 && dense->result != stored;
	const int64_t count = dense->rows * dense->columns;
	struct smalti_dense d = *dense;
	d.a_dtype = d.b_dtype = d.compute = stored;
	d.result = converted ? SMALTI_F32 : dense->result;
	const void *left =
	    rounded(SMALTI_SCRATCH_ROWS, d.rows * d.inner, dense->a_dtype, dense->compute, a, error);
	const void *right =
	    rounded(SMALTI_SCRATCH_CONVERT, d.inner * d.columns, dense->b_dtype, dense->compute, b, error);
	void *result =
	    converted ? smalti_scratch(SMALTI_SCRATCH_PRODUCT, count * (int64_t)sizeof(float), error) : y;
	if (!left || !right || !result)
		return -1;
	if ((is_for_blas(&d) ? multiply_copies(&d, left, right, result, error)
			     : multiply_in_place(&d, left, right, result, error)) < 0)
		return -1;
	if (converted)
		smalti_convert(count, SMALTI_F32, result, dense->result, y);
	return 0;
}

/* Of bf16 by AMX the library copies more than it multiplies: it took 1.3 times as long. */
int smalti_dense(const struct smalti_dense *dense, const void *a, const void *b, void *y,
		 struct smalti_error *error)
{
	if (dense->compute != SMALTI_BF16 || smalti_isa() < SMALTI_ISA_AMX)
		return multiply_by_library(dense, a, b, y, error);
	const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels(smalti_isa());
	const int64_t floats = kernels->dense_bf16_scratch(dense);
	float *scratch = smalti_scratch(SMALTI_SCRATCH_PRODUCT, floats * (int64_t)sizeof(*scratch), error);
	if (!scratch)
		return -1;
	kernels->dense_bf16(dense, a, b, y, scratch);
	return 0;
}
