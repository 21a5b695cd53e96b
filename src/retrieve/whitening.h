/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* y = W·(x − mean), so that the vectors it is made of have about the unit matrix as their covariance:
 * W = L⁻¹ of the Cholesky factor L of their covariance, of which a thousandth of its mean diagonal is added
 * to the diagonal. Cosines of whitened vectors are the same with every W for which WᵀW is that inverse. */
struct smalti_whitening {
	int64_t dim;
	float *mean;   /* [dim] */
	float *matrix; /* W [dim, dim]: zeros above the diagonal */
};

/* Sums of vectors, of which the whitening is made. */
struct smalti_moments {
	int64_t dim, count;
	double *sum;      /* [dim] */
	double *products; /* of the vectors less the first one [dim, dim], on and below the diagonal */
	double *origin;   /* the first vector, near which the others are: so that nothing cancels */
};

int smalti_moments_open(struct smalti_moments *moments, int64_t dim, struct smalti_error *error);
void smalti_moments_close(struct smalti_moments *moments);
void smalti_moments_add(struct smalti_moments *moments, const double *vector);

/* Of one vector at least. Free it in any case. */
int smalti_whitening_make(struct smalti_whitening *whitening, const struct smalti_moments *moments,
			  struct smalti_error *error);
void smalti_whitening_free(struct smalti_whitening *whitening);
/* In place. */
void smalti_whitening_apply(int64_t dim, const float *mean, const float *matrix, double *vector);
