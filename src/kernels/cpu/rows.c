/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/rows.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

#include <math.h>

int smalti_rmsnorm_parts(const struct smalti_row_parts *parts, int64_t rows, int64_t dim, float epsilon,
			 const float *weight, enum smalti_dtype dtype, void *y, struct smalti_error *error)
{
	float *whole = smalti_scratch(SMALTI_SCRATCH_ROWS, dim * (int64_t)sizeof(float), error);
	if (!whole)
		return -1;
	const int64_t row_bytes = dim * smalti_dtype_bytes(dtype);
	for (int64_t row = 0; row < rows; row++) {
		float *to = whole;
		for (int i = 0; i < parts->count; to += parts->columns[i++])
			memcpy(to, (const float *)parts->x[i] + (parts->first + row) * parts->columns[i],
			       (size_t)parts->columns[i] * sizeof(float));
		smalti_kernels()->rmsnorm(1, dim, whole, epsilon, weight, dtype, (char *)y + row * row_bytes);
	}
	return 0;
}

void smalti_add_row(int64_t rows, int64_t dim, const float *row, float *y)
{
	for (int64_t r = 0; r < rows; r++, y += dim)
		smalti_kernels()->add(dim, y, row, y);
}

void smalti_add_periodic(int64_t rows, int64_t dim, const float *table, int64_t period, const float *repeated,
			 float *y)
{
	for (int64_t r = 0; r < rows; r++)
		smalti_kernels()->add(dim, table + r * dim, repeated + r % period * dim, y + r * dim);
}

void smalti_add_positions(int64_t first, int64_t rows, int64_t columns, int64_t dim, const float *table,
			  float *y)
{
	const int64_t half = dim / 2;
	for (int64_t n = first; n < first + rows; n++, y += dim) {
		smalti_kernels()->add(half, y, table + n % columns * half, y);
		smalti_kernels()->add(half, y + half, table + (columns + n / columns) * half, y + half);
	}
}

void smalti_distances(int64_t dim, int64_t group, int64_t used, const float *x, const float *y, float sums[4])
{
	double all[4] = {0};
	for (int64_t first = 0; first < dim; first += group)
		for (int64_t i = first; i < first + used; i++) {
			const double difference = (double)x[i] - (double)y[i];
			all[0] += fabs(difference);
			all[1] += fabs((double)y[i]);
			all[2] += difference * difference;
			all[3] += (double)y[i] * (double)y[i];
		}
	for (int i = 0; i < 4; i++)
		sums[i] = (float)all[i];
}

void smalti_scale(int64_t count, const float *x, float factor, float *y)
{
	for (int64_t i = 0; i < count; i++)
		y[i] = x[i] * factor;
}

void smalti_guide(int64_t count, const float *u, float guidance, float *c)
{
	for (int64_t i = 0; i < count; i++)
		c[i] = u[i] + guidance * (c[i] - u[i]);
}
