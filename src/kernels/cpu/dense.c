/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/backward.h"
#include "kernels/cpu/onednn.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

enum smalti_dtype smalti_product_dtype(enum smalti_dtype compute)
{
	return smalti_onednn_operands(compute);
}

void smalti_operand(int64_t count, enum smalti_dtype dtype, const void *x, enum smalti_dtype compute,
		    float *y)
{
	enum { PIECE = 1024 };
	const int64_t size = smalti_dtype_bytes(dtype);
	uint16_t narrow[PIECE];
	if (dtype == compute || compute == SMALTI_F32) {
		smalti_kernels()->convert(count, dtype, x, SMALTI_F32, y);
		return;
	}
	for (int64_t at = 0; at < count; at += PIECE) {
		const int64_t piece = smalti_min(PIECE, count - at);
		smalti_kernels()->convert(piece, dtype, (const char *)x + at * size, compute, narrow);
		smalti_kernels()->convert(piece, compute, narrow, SMALTI_F32, y + at);
	}
}

/* A matrix in memory, with `stride` elements from a row to the next. */
struct matrix {
	int64_t rows, columns, stride;
	enum smalti_dtype dtype;
	const void *data;
};

static struct matrix left_of(const struct smalti_dense *d, const void *a)
{
	return (struct matrix){d->turned_a ? d->inner : d->rows, d->turned_a ? d->rows : d->inner,
			       smalti_dense_a_row(d), d->a_dtype, a};
}

static struct matrix right_of(const struct smalti_dense *d, const void *b)
{
	return (struct matrix){d->turned_b ? d->columns : d->inner, d->turned_b ? d->inner : d->columns,
			       smalti_dense_b_row(d), d->b_dtype, b};
}

/* A product in f32. */
struct product {
	const struct smalti_dense *dense;
	struct matrix a, b;
	float *y;
	int64_t y_stride;
};

/* Replaces an operand that cannot be multiplied directly by its rounded copy in scratch. */
static int round_operand(enum smalti_scratch_use use, enum smalti_dtype compute, struct matrix *m,
			 struct smalti_error *error)
{
	if (m->dtype == SMALTI_F32 && compute == SMALTI_F32)
		return 0;
	float *copy = smalti_scratch(use, m->rows * m->columns * (int64_t)sizeof(*copy), error);
	if (!copy)
		return -1;
	for (int64_t row = 0; row < m->rows; row++)
		smalti_operand(m->columns, m->dtype,
			       (const char *)m->data + row * m->stride * smalti_dtype_bytes(m->dtype),
			       compute, copy + row * m->columns);
	*m = (struct matrix){m->rows, m->columns, m->columns, SMALTI_F32, copy};
	return 0;
}

/* Describes a matrix in memory. Where an axis has one element, its stride means nothing: it is set, so that
 * descriptions that are equal to oneDNN are the same, and give the same primitive in each thread. */
static dnnl_status_t describe_matrix(smalti_layout *layout, const dnnl_dims_t dims, int64_t stride,
				     bool turned)
{
	dnnl_dims_t strides = {turned ? 1 : stride, turned ? stride : 1};
	if (dims[1] == 1)
		strides[1] = 1;
	if (dims[0] == 1)
		strides[0] = dims[1] * strides[1];
	return smalti_layout_by_strides(layout, 2, dims, dnnl_f32, strides);
}

static dnnl_status_t describe_matrices(const struct product *p, dnnl_engine_t engine,
				       const_dnnl_primitive_attr_t attributes,
				       dnnl_primitive_desc_t *description)
{
	const struct smalti_dense *d = p->dense;
	const struct {
		dnnl_dims_t dims;
		int64_t stride;
		bool turned, there;
	} matrices[] = {
	    {{d->rows, d->inner}, p->a.stride, d->turned_a, true},
	    {{d->inner, d->columns}, p->b.stride, d->turned_b, true},
	    {{1, d->columns}, d->columns, false, d->bias},
	    {{d->rows, d->columns}, p->y_stride, false, true},
	};
	smalti_layout layout[COUNT_OF(matrices)] = {NULL};
	dnnl_status_t status = dnnl_success;
	for (size_t i = 0; i < COUNT_OF(matrices) && !status; i++)
		if (matrices[i].there)
			status = describe_matrix(&layout[i], matrices[i].dims, matrices[i].stride,
						 matrices[i].turned);
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
	const struct product *product = context;
	dnnl_status_t status = product->dense->add ? smalti_onednn_add_to_result(attributes) : dnnl_success;
	if (!status)
		status = describe_matrices(product, engine, attributes, description);
	return smalti_onednn_check(status, "no such product", error);
}

static int multiply_in_place(const struct product *p, struct smalti_error *error)
{
	const struct smalti_dense *d = p->dense;
	const int kind = d->turned_a | d->turned_b << 1 | d->add << 2 | (d->bias != NULL) << 3;
	const struct smalti_onednn_key key = {
	    {'d', d->rows, d->inner, d->columns, p->a.stride, p->b.stride, p->y_stride, kind}};
	const struct smalti_onednn_argument arguments[] = {{DNNL_ARG_SRC, p->a.data},
							   {DNNL_ARG_WEIGHTS, p->b.data},
							   {DNNL_ARG_DST, p->y},
							   {DNNL_ARG_BIAS, d->bias}};
	return smalti_onednn_run(&key, describe, p, arguments, COUNT_OF(arguments) - !d->bias, error);
}

static void begin_with_bias(const struct product *p)
{
	const int64_t columns = p->dense->columns;
	float *y = p->y;
	for (int64_t row = 0; row < p->dense->rows; row++, y += p->y_stride)
		if (p->dense->add)
			smalti_kernels()->add(columns, y, p->dense->bias, y);
		else
			memcpy(y, p->dense->bias, (size_t)columns * sizeof(*y));
}

static int multiply_copies(const struct product *p, struct smalti_error *error)
{
	const struct smalti_dense *d = p->dense;
	ALONE_IN_ONEDNN;
	if (!smalti_onednn_engine(error))
		return -1;
	if (d->bias)
		begin_with_bias(p);
	const dnnl_status_t status = dnnl_sgemm(d->turned_a ? 'T' : 'N', d->turned_b ? 'T' : 'N', d->rows,
						d->columns, d->inner, 1, p->a.data, p->a.stride, p->b.data,
						p->b.stride, d->add || d->bias ? 1 : 0, p->y, p->y_stride);
	return smalti_onednn_check(status, "a product failed", error);
}

/* oneDNN's matmul reads its operands in place; its BLAS copies them first, which pays in large products: with
 * rows 18 KB apart matmul took 1.1 and 1.26 times as long (EPYC), with weights that no cache held 1.4 times
 * (Sapphire Rapids). */
static bool is_large(const struct smalti_dense *d)
{
	const double large = 1 << 26; /* operations */
	return 2. * (double)d->rows * (double)d->inner * (double)d->columns >= large;
}

/* Where large weights meet few rows, transposing them on the way costs less than a copy: the library
 * took 1.00 to 1.11 times as long with 256 and 512 rows, and 0.98 times with 1024 (EPYC with AVX-512). By
 * AVX2 it took 0.92 to 1.05 times as long. */
static bool is_streamed(const struct smalti_dense *d)
{
	enum { ROWS = 512 };
	return is_large(d) && d->rows <= ROWS && d->turned_b && !d->turned_a && d->compute == SMALTI_F32 &&
	       d->a_dtype == SMALTI_F32 && smalti_isa() >= SMALTI_ISA_AVX512;
}

static int multiply_streamed(const struct smalti_dense *d, const void *a, const void *b, void *y,
			     struct smalti_error *error)
{
	const struct smalti_matmul matmul = {d->rows,    d->inner,
					     d->columns, d->compute,
					     d->result,  d->add ? SMALTI_EPILOGUE_ADD : SMALTI_EPILOGUE_NONE};
	const struct smalti_raw_columns x = {a, d->inner, smalti_dense_a_row(d)};
	const struct smalti_raw_weight weight = {b, d->b_dtype, smalti_dense_b_row(d)};
	return smalti_matmul_raw(&matmul, &x, 1, &weight, d->bias, NULL, smalti_dense_y_row(d), y, error);
}

static int multiply_by_library(const struct smalti_dense *d, const void *a, const void *b, void *y,
			       struct smalti_error *error)
{
	const bool converted = d->result != SMALTI_F32;
	const int64_t y_stride = smalti_dense_y_row(d);
	struct product p = {d, left_of(d, a), right_of(d, b), y, converted ? d->columns : y_stride};
	if (converted)
		p.y = smalti_scratch(SMALTI_SCRATCH_PRODUCT, d->rows * d->columns * (int64_t)sizeof(*p.y),
				     error);
	if (!p.y || round_operand(SMALTI_SCRATCH_ROWS, d->compute, &p.a, error) < 0 ||
	    round_operand(SMALTI_SCRATCH_CONVERT, d->compute, &p.b, error) < 0)
		return -1;
	if ((is_large(d) ? multiply_copies(&p, error) : multiply_in_place(&p, error)) < 0)
		return -1;
	for (int64_t row = 0; converted && row < d->rows; row++)
		smalti_kernels()->convert(d->columns, SMALTI_F32, p.y + row * d->columns, d->result,
					  (char *)y + row * y_stride * smalti_dtype_bytes(d->result));
	return 0;
}

/* Computes bf16 without oneDNN, which copies more than it multiplies: it took 1.3 times as long by AMX, and
 * 1.2 to 1.4 times by AVX-512. */
int smalti_dense(const struct smalti_dense *dense, const void *a, const void *b, void *y,
		 struct smalti_error *error)
{
	if (is_streamed(dense))
		return multiply_streamed(dense, a, b, y, error);
	if (smalti_product_dtype(dense->compute) != SMALTI_BF16)
		return multiply_by_library(dense, a, b, y, error);
	const struct smalti_cpu_kernels *kernels = smalti_kernels();
	const int64_t floats = kernels->dense_bf16_scratch(dense);
	float *scratch = smalti_scratch(SMALTI_SCRATCH_PRODUCT, floats * (int64_t)sizeof(*scratch), error);
	if (!scratch)
		return -1;
	kernels->dense_bf16(dense, a, b, y, scratch);
	return 0;
}
