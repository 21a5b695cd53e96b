/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"

/* Loops over the rows of tokens, f32 unless said otherwise. */

/* Rows of an f32 matrix that is `count` matrices x[i] [*, columns[i]] side by side, from row `first` on. */
struct smalti_row_parts {
	const void *const *x;
	const int64_t *columns;
	int count;
	int64_t first;
};

/* smalti_rmsnorm() of such rows, which have `dim` columns together. */
int smalti_rmsnorm_parts(const struct smalti_row_parts *parts, int64_t rows, int64_t dim, float epsilon,
			 const float *weight, enum smalti_dtype dtype, void *y, struct smalti_error *error);

/* y[r] += row */
void smalti_add_row(int64_t rows, int64_t dim, const float *row, float *y);

/* y[r] = table[r] + repeated[r mod period] */
void smalti_add_periodic(int64_t rows, int64_t dim, const float *table, int64_t period, const float *repeated,
			 float *y);

/* Adds to tokens first … what their column and their row have in the position table [columns + *, dim / 2],
 * in an image that is `columns` patches wide. */
void smalti_add_positions(int64_t first, int64_t rows, int64_t columns, int64_t dim, const float *table,
			  float *y);

/* y[i] = x[i]·factor */
void smalti_scale(int64_t count, const float *x, float factor, float *y);

/* c[i] = u[i] + guidance·(c[i] − u[i]) */
void smalti_guide(int64_t count, const float *u, float guidance, float *c);
