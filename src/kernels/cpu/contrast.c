/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/contrast.h"
#include "kernels/backward.h"
#include "kernels/scratch.h"

#include <math.h>

static double product(int64_t dim, const float *x, const float *y)
{
	double sum = 0;
	for (int64_t i = 0; i < dim; i++)
		sum += (double)x[i] * (double)y[i];
	return sum;
}

void smalti_unit_rows(int64_t rows, int64_t dim, const float *x, float *y)
{
	for (int64_t row = 0; row < rows; row++, x += dim, y += dim) {
		const double length = sqrt(product(dim, x, x));
		for (int64_t i = 0; i < dim; i++)
			y[i] = length > 0 ? (float)((double)x[i] / length) : 0;
	}
}

void smalti_unit_rows_backward(int64_t rows, int64_t dim, const float *x, float *g)
{
	for (int64_t row = 0; row < rows; row++, x += dim, g += dim) {
		const double square = product(dim, x, x),
			     along = square > 0 ? product(dim, x, g) / square : 0;
		for (int64_t i = 0; i < dim; i++)
			g[i] = square > 0 ? (float)(((double)g[i] - along * (double)x[i]) / sqrt(square)) : 0;
	}
}

/* Computes the products [rows, batch], in scratch. */
static float *products_of(const struct smalti_contrast *c, const float *x, const float *y,
			  struct smalti_error *error)
{
	const struct smalti_dense dense = {
	    .rows = c->rows, .inner = c->dim, .columns = c->batch, .turned_b = true};
	float *products =
	    smalti_scratch(SMALTI_SCRATCH_SCORES, c->rows * c->batch * (int64_t)sizeof(*products), error);
	return products && smalti_dense(&dense, x, y, products, error) == 0 ? products : NULL;
}

/* Takes the factor out of all exponentials: products are 1 at most, except for rounding, so none overflows
 * before the factor's own does. */
int smalti_contrast_sums(const struct smalti_contrast *c, const float *x, const float *y, double *lse,
			 struct smalti_error *error)
{
	const float *products = products_of(c, x, y, error);
	const double factor = exp((double)c->temperature);
	if (!products)
		return -1;
	for (int64_t row = 0; row < c->rows; row++, products += c->batch) {
		double sum = 0;
		for (int64_t i = 0; i < c->batch; i++)
			sum += exp(factor * ((double)products[i] - 1));
		lse[row] = factor + log(sum);
	}
	return 0;
}

/* Replaces the products of a row by ∂loss/∂S. */
static void row_gradient(const struct smalti_contrast *c, int64_t own, const double *lse, const double *y_lse,
			 float *row, double *loss, double *temperature)
{
	const double factor = exp((double)c->temperature), share = 0.5 / (double)c->batch;
	*loss += share * (lse[own] - factor * (double)row[own]);
	for (int64_t i = 0; i < c->batch; i++) {
		const double logit = factor * (double)row[i];
		const double gradient =
		    share * (exp(logit - lse[own]) + exp(logit - y_lse[i]) - (i == own ? 2 : 0));
		*temperature += 0.5 * gradient * logit;
		row[i] = (float)(factor * gradient);
	}
}

int smalti_contrast_gradient(const struct smalti_contrast *c, const float *x, const float *y,
			     const double *lse, const double *y_lse, float *gx,
			     struct smalti_contrast_parts *parts, struct smalti_error *error)
{
	const struct smalti_dense dense = {.rows = c->rows, .inner = c->batch, .columns = c->dim};
	float *products = products_of(c, x, y, error);
	double loss = 0, temperature = 0;
	if (!products)
		return -1;
	for (int64_t row = 0; row < c->rows; row++)
		row_gradient(c, c->first + row, lse, y_lse, products + row * c->batch, &loss, &temperature);
	*parts = (struct smalti_contrast_parts){(float)loss, (float)temperature};
	return smalti_dense(&dense, products, y, gx, error);
}
