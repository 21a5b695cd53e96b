/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/layers/layers.h"

/* Adds to y, f32, what an adapter in training adds to a layer of x: s·(x·Aᵀ)·Bᵀ for each of the pairs. */
void smalti_layer_low_rank(struct smalti_tape *tape, const struct smalti_low_rank_pair *pairs,
			   struct smalti_value x, struct smalti_value y);
/* Returns x, f32, rounded to a dtype, and releases x. */
struct smalti_value smalti_layer_rounded(struct smalti_tape *tape, struct smalti_value *x,
					 enum smalti_dtype dtype);
