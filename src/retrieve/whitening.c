/* SPDX-License-Identifier: Apache-2.0 */
#include "retrieve/whitening.h"

#include <math.h>

static double *square_of(int64_t dim, struct smalti_error *error)
{
	int64_t count = dim;
	if (smalti_multiply(&count, dim))
		return smalti_calloc(count, sizeof(double), error);
	smalti_fail(error, SMALTI_ENOMEM, "vectors of impossible size: %" PRId64, dim);
	return NULL;
}

int smalti_vector_moments_open(struct smalti_vector_moments *moments, int64_t dim, struct smalti_error *error)
{
	*moments = (struct smalti_vector_moments){.dim = dim};
	moments->sum = smalti_calloc(dim, sizeof(double), error);
	moments->origin = smalti_calloc(dim, sizeof(double), error);
	moments->products = square_of(dim, error);
	return moments->sum && moments->origin && moments->products ? 0 : -1;
}

void smalti_vector_moments_close(struct smalti_vector_moments *moments)
{
	free(moments->sum);
	free(moments->origin);
	free(moments->products);
}

void smalti_vector_moments_add(struct smalti_vector_moments *moments, const double *vector)
{
	const int64_t dim = moments->dim;
	if (moments->count++ == 0)
		memcpy(moments->origin, vector, (size_t)dim * sizeof(*vector));
	for (int64_t i = 0; i < dim; i++) {
		const double x = vector[i] - moments->origin[i];
		double *row = moments->products + i * dim;
		moments->sum[i] += x;
		for (int64_t j = 0; j <= i; j++)
			row[j] += x * (vector[j] - moments->origin[j]);
	}
}

/* Returns the covariance, on and below the diagonal. */
static double *covariance_of(const struct smalti_vector_moments *m, struct smalti_error *error)
{
	static const double added = 1e-3;
	const double count = (double)m->count;
	double *covariance = square_of(m->dim, error), trace = 0;
	if (!covariance)
		return NULL;
	for (int64_t i = 0; i < m->dim; i++)
		for (int64_t j = 0; j <= i; j++)
			covariance[i * m->dim + j] =
			    (m->products[i * m->dim + j] - m->sum[i] * m->sum[j] / count) / count;
	for (int64_t i = 0; i < m->dim; i++)
		trace += covariance[i * (m->dim + 1)];
	for (int64_t i = 0; i < m->dim; i++) /* all vectors are equal: there is nothing to whiten */
		covariance[i * (m->dim + 1)] += trace > 0 ? added * trace / (double)m->dim : 1;
	return covariance;
}

/* Computes L of L·Lᵀ = a, in place. */
static void factorise(int64_t dim, double *a)
{
	for (int64_t i = 0; i < dim; i++)
		for (int64_t j = 0; j <= i; j++) {
			double sum = a[i * dim + j];
			for (int64_t k = 0; k < j; k++)
				sum -= a[i * dim + k] * a[j * dim + k];
			a[i * dim + j] = i == j ? sqrt(sum) : sum / a[j * dim + j];
		}
}

/* Computes L⁻¹ column by column. */
static void invert(int64_t dim, const double *l, float *inverse, double *column)
{
	for (int64_t j = 0; j < dim; j++)
		for (int64_t i = j; i < dim; i++) {
			double sum = i == j ? 1 : 0;
			for (int64_t k = j; k < i; k++)
				sum -= l[i * dim + k] * column[k];
			column[i] = sum / l[i * dim + i];
			inverse[i * dim + j] = (float)column[i];
		}
}

int smalti_whitening_make(struct smalti_whitening *whitening, const struct smalti_vector_moments *moments,
			  struct smalti_error *error)
{
	const int64_t dim = moments->dim;
	*whitening = (struct smalti_whitening){.dim = dim};
	SCOPED(free) double *factor = covariance_of(moments, error);
	SCOPED(free) double *column = smalti_calloc(dim, sizeof(*column), error);
	whitening->mean = smalti_calloc(dim, sizeof(float), error);
	whitening->matrix = factor ? smalti_calloc(dim * dim, sizeof(float), error) : NULL;
	if (!whitening->matrix || !whitening->mean || !column)
		return -1;
	for (int64_t i = 0; i < dim; i++)
		whitening->mean[i] = (float)(moments->origin[i] + moments->sum[i] / (double)moments->count);
	factorise(dim, factor);
	invert(dim, factor, whitening->matrix, column);
	return 0;
}

void smalti_whitening_free(struct smalti_whitening *whitening)
{
	free(whitening->mean);
	free(whitening->matrix);
}

void smalti_whitening_apply(int64_t dim, const float *mean, const float *matrix, double *vector)
{
	for (int64_t i = 0; i < dim; i++)
		vector[i] -= (double)mean[i];
	for (int64_t i = dim; i-- > 0;) { /* earlier values are still unchanged */
		double sum = 0;
		for (int64_t j = 0; j <= i; j++)
			sum += (double)matrix[i * dim + j] * vector[j];
		vector[i] = sum;
	}
}
