/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/safetensors.h"

/* Weights by formula, alike on every machine, which keep activations of real geometries in range. Element i
 * (row-major) of tensor k (bytewise order of names) is offset + scale · u in double, then f32, u uniform in
 * [-1, 1): 24 bits of the k · 2^40 + i-th value of SplitMix64.
 *
 *	weights of normalisations                       1 + 0.1 u
 *	other vectors (biases)                          0.02 u
 *	scale_shift_table                               0.05 u
 *	shared.weight, relative_attention_bias.weight   u
 *	all others                                      √(3 / product of all extents but the first) · u
 *	                                                (an eighth of it in T5's SelfAttention.q) */
struct smalti_fill {
	uint64_t start;
	double offset, scale;
};

/* Tells whether a tensor of that name scales the result of a normalisation: 1 is its neutral value. */
bool smalti_is_norm_weight(const char *name);

/* Returns the formula of tensor `k`, from its name and shape. */
struct smalti_fill smalti_fill_of(const struct smalti_tensor_view *tensor, int k);

/* Fills in elements `first` to `first + count`. */
void smalti_fill(const struct smalti_fill *fill, int64_t first, int64_t count, float *to);
