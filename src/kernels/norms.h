/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "kernels/moments.h"

#include <stdbool.h>

/* All is row-major and contiguous; x is f32; y has the given dtype. No function can fail. */

/* Computes y = LN(x)·(1 + scale) + shift over each row of `dim`; LN without affine (docs/reference.md
 * 3.5). */
void smalti_layernorm_modulate(int64_t rows, int64_t dim, const float *x, float epsilon, const float *shift,
			       const float *scale, enum smalti_dtype dtype, void *y);

/* Computes y = weight ⊙ x / sqrt(mean(x²) + epsilon) (docs/reference.md 2.2). */
void smalti_rmsnorm(int64_t rows, int64_t dim, const float *x, float epsilon, const float *weight,
		    enum smalti_dtype dtype, void *y);

/* Computes moments[g] of each of `groups` equal groups of channels of x [pixels, channels]; sums in
 * double. */
void smalti_groupnorm_moments(int64_t pixels, int64_t channels, int64_t groups, const float *x,
			      struct smalti_moments *moments);

/* Merges `from` into `into` (Chan, Golub, LeVeque 1979). Not associative in the last bits: callers
 * fix the order. A count of 0 is the neutral element. */
void smalti_moments_merge(int64_t groups, const struct smalti_moments *from, struct smalti_moments *into);

/* Computes GroupNorm's y = a·x + b per channel: a[channels], b[channels] from the merged moments and the
 * affine gamma, beta (docs/reference.md 5.1; biased variance). */
void smalti_groupnorm_coefficients(int64_t channels, int64_t groups, const struct smalti_moments *moments,
				   double epsilon, const float *gamma, const float *beta, float *a, float *b);

/* Computes y = a·x + b per channel of x [pixels, channels], then SiLU if asked. */
void smalti_groupnorm_apply(int64_t pixels, int64_t channels, const float *x, const float *a, const float *b,
			    bool silu, enum smalti_dtype dtype, void *y);
