/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The loss that CLIP is trained with (symmetric InfoNCE), of a batch of pairs (xᵢ, yᵢ) of vectors of length
 * 1, f32 [batch, dim]: with logits Sᵢⱼ = e^temperature·xᵢ·yⱼ
 *
 *   loss = Σᵢ (log Σⱼ e^Sᵢⱼ − Sᵢᵢ) / 2·batch + Σⱼ (log Σᵢ e^Sᵢⱼ − Sⱼⱼ) / 2·batch
 *
 * Either side's vectors may be x; then the other's are y. Products are f32, sums of exponentials double. */

/* Divides each row by its length; a row of zeros stays as it is. */
void smalti_unit_rows(int64_t rows, int64_t dim, const float *x, float *y);
/* Replaces gy by gx. */
void smalti_unit_rows_backward(int64_t rows, int64_t dim, const float *x, float *g);

/* Rows first … first + rows − 1 of the batch. */
struct smalti_contrast {
	int64_t rows, first, batch, dim;
	float temperature;
};

/* Computes lse [rows], log Σⱼ e^Sᵢⱼ, of x [rows, dim] and y [batch, dim]. */
int smalti_contrast_sums(const struct smalti_contrast *contrast, const float *x, const float *y, double *lse,
			 struct smalti_error *error);

/* What the rows add to the loss, which is their half of it, and to half its gradient by the temperature. */
struct smalti_contrast_parts {
	float loss, temperature;
};

/* Computes the loss's gradient gx [rows, dim]; lse and y_lse [batch] are of all rows of both sides. */
int smalti_contrast_gradient(const struct smalti_contrast *contrast, const float *x, const float *y,
			     const double *lse, const double *y_lse, float *gx,
			     struct smalti_contrast_parts *parts, struct smalti_error *error);
