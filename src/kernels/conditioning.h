/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Small tables of timesteps, positions and sizes for transformers, computed once per request. */

enum { SMALTI_SINUSOID_SIZE = 256 };

/* Computes y[256] = cos(value·f_k) for k < 128, then sin(value·f_k), f_k = exp(−ln(10000)·k/128), in f32 like
 * the reference (docs/reference.md 3.3). */
void smalti_sinusoid(float value, float *y);

/* Computes the 2-D sin-cos positional embedding, which is separable: row j < columns of `table` [columns +
 * rows, dim/2] has the first dim/2 channels of any patch in column j, row columns + i the others of any patch
 * in row i (docs/reference.md 3.2). dim is divisible by 4. */
void smalti_positions(int64_t columns, int64_t rows, int64_t dim, int64_t base, double interpolation_scale,
		      float *table);

/* Returns the bucket of r = key index − query index, bidirectional (docs/reference.md 2.2). */
int64_t smalti_relative_bucket(int64_t r, int64_t buckets, int64_t max_distance);

/* Computes bias[h][r + reach − 1] = table[bucket(r)][h] for |r| < reach; table f32 [buckets, heads]. */
void smalti_relative_bias(int64_t heads, int64_t buckets, int64_t max_distance, int64_t reach,
			  const float *table, float *bias);
