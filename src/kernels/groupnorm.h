/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "kernels/moments.h"

/* What lies between the kernels groupnorm_moments and groupnorm_apply. */

/* Merges `from` into `into` (Chan, Golub, LeVeque 1979). Not associative in the last bits: callers
 * fix the order. A count of 0 is the neutral element. */
void smalti_moments_merge(int64_t groups, const struct smalti_moments *from, struct smalti_moments *into);

/* Computes GroupNorm's y = a·x + b per channel: a[channels], b[channels] from the merged moments and the
 * affine gamma, beta (docs/reference.md 5.1; biased variance). */
void smalti_groupnorm_coefficients(int64_t channels, int64_t groups, const struct smalti_moments *moments,
				   double epsilon, const float *gamma, const float *beta, float *a, float *b);
