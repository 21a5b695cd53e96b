/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"

/* Loops over the rows of tokens, f32 unless said otherwise. */

/* Rows of an f32 matrix, from row `first` on. The matrix is `count` matrices x[i] [*, columns[i]] side by
 * side. */
struct smalti_row_parts {
	const void *const *x;
	const int64_t *columns;
	int count;
	int64_t first;
};

/* Computes the kernel rmsnorm of such rows, which have `dim` columns together. */
int smalti_rmsnorm_parts(const struct smalti_row_parts *parts, int64_t rows, int64_t dim, float epsilon,
			 const float *weight, enum smalti_dtype dtype, void *y, struct smalti_error *error);

/* Computes y[r] += row. */
void smalti_add_row(int64_t rows, int64_t dim, const float *row, float *y);

/* Computes y[r] = table[r] + repeated[r mod period]. */
void smalti_add_periodic(int64_t rows, int64_t dim, const float *table, int64_t period, const float *repeated,
			 float *y);

/* Adds to tokens first … the entries of their column and row in the position table [columns + *, dim / 2],
 * for an image that is `columns` patches wide. */
void smalti_add_positions(int64_t first, int64_t rows, int64_t columns, int64_t dim, const float *table,
			  float *y);

/* Computes the sums of |x − y|, |y|, (x − y)² and y² in double, over the first `used` of every `group`
 * values. */
void smalti_distances(int64_t dim, int64_t group, int64_t used, const float *x, const float *y,
		      float sums[4]);

/* Computes y[i] = x[i]·factor. */
void smalti_scale(int64_t count, const float *x, float factor, float *y);

/* Computes c[i] = u[i] + guidance·(c[i] − u[i]). */
void smalti_guide(int64_t count, const float *u, float guidance, float *c);
