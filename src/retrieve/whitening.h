/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* The whitening y = W·(x − mean) gives the vectors it is made of about the unit matrix as their covariance. W
 * = L⁻¹ of the Cholesky factor L of their covariance, after a thousandth of its mean diagonal was added to
 * the diagonal. Every W for which WᵀW is the inverse of that matrix gives the same cosines. */
struct smalti_whitening {
	int64_t dim;
	float *mean;   /* [dim] */
	float *matrix; /* W [dim, dim]: zeros above the diagonal */
};

/* The sums of vectors from which the whitening is made. */
struct smalti_vector_moments {
	int64_t dim, count;
	double *sum;      /* [dim] */
	double *products; /* of the vectors less the first one [dim, dim], on and below the diagonal */
	double *origin;   /* the first vector; the others are near it, so that nothing cancels */
};

int smalti_vector_moments_open(struct smalti_vector_moments *moments, int64_t dim,
			       struct smalti_error *error);
void smalti_vector_moments_close(struct smalti_vector_moments *moments);
void smalti_vector_moments_add(struct smalti_vector_moments *moments, const double *vector);

/* Takes one vector or more. Free it in any case. */
int smalti_whitening_make(struct smalti_whitening *whitening, const struct smalti_vector_moments *moments,
			  struct smalti_error *error);
void smalti_whitening_free(struct smalti_whitening *whitening);
/* Whitens a vector in place. */
void smalti_whitening_apply(int64_t dim, const float *mean, const float *matrix, double *vector);
