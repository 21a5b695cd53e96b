/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"

/* What gradients need beside the kernels that are compiled per instruction set (kernels.def): f32 unless said
 * otherwise, row-major and contiguous. */

/* LayerNorm whose gradients layernorm_modulate_backward computes; `add`: gx is added to. */
struct smalti_layernorm_backward {
	int64_t rows, dim;
	float epsilon;
	bool add;
};

/* Computes y = x, rounded to `compute`. */
void smalti_operand(int64_t count, enum smalti_dtype dtype, const void *x, enum smalti_dtype compute,
		    float *y);

/* y[rows, columns] = a·b (+ bias), or y += that. a is [rows, inner], and b [inner, columns]; an operand that
 * is turned lies in memory as its transpose. Sums are f32. */
struct smalti_dense {
	int64_t rows, inner, columns;
	bool turned_a, turned_b, add;
	enum smalti_dtype a_dtype, b_dtype; /* in memory */
	enum smalti_dtype compute;          /* f32 operands are rounded to it; in f32, they all are f32 */
	enum smalti_dtype result;           /* with `add` it must be f32 */
	const float *bias;                  /* [columns]; NULL: none */
	/* Elements from one row in memory to the next; 0: rows are contiguous. */
	int64_t a_stride, b_stride, y_stride;
};
/* Return the elements from row to row in memory. @{ */
static inline int64_t smalti_dense_a_row(const struct smalti_dense *d)
{
	return d->a_stride ? d->a_stride : d->turned_a ? d->rows : d->inner;
}

static inline int64_t smalti_dense_b_row(const struct smalti_dense *d)
{
	return d->b_stride ? d->b_stride : d->turned_b ? d->inner : d->columns;
}

static inline int64_t smalti_dense_y_row(const struct smalti_dense *d)
{
	return d->y_stride ? d->y_stride : d->columns;
}
/* @} */
int smalti_dense(const struct smalti_dense *dense, const void *a, const void *b, void *y,
		 struct smalti_error *error);
/* Returns the dtype of products whose operands are rounded to `compute`: bf16 with instructions for it, else
 * f32. */
enum smalti_dtype smalti_product_dtype(enum smalti_dtype compute);
