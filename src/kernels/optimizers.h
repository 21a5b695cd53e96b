/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include "kernels/update_rules.h"

/* Updates of parameters, f32 with scalars in double that are rounded once (docs/training.md). The gradient is
 * `gradient_scale` times the given one. */

/* Updates as torch.optim.AdamW does. mean, square: its state, 0 at first. */
void smalti_adamw(const struct smalti_adamw *adamw, int64_t count, const float *gradient, float *value,
		  float *mean, float *square);

struct smalti_adamw_factors smalti_adamw_factors(const struct smalti_adamw *adamw);

/* Returns the floats of the state `factors`. */
int64_t smalti_came_factors(const struct smalti_came_shape *shape);

/* Updates as came-pytorch does. mean [part], factors: its state, 0 at first. */
int smalti_came(const struct smalti_came *came, const struct smalti_came_shape *shape,
		const float *const gradient[SMALTI_CAME_PARTS], float *const value[SMALTI_CAME_PARTS],
		float *const mean[SMALTI_CAME_PARTS], float *factors, struct smalti_error *error);

/* Computes average += (1 − decay)·(value − average). */
void smalti_average(int64_t count, double decay, const float *value, float *average);

/* Returns Σ (factor·x)², summed in pieces of fixed size; not finite if one of x is not. */
double smalti_square_sum(int64_t count, double factor, const float *x);
