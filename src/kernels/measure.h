/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stdint.h>

/* Loops that measure a CPU, with the vectors that the kernels use. Counts of floats are multiples of
 * SMALTI_MEASURE_STEP. */
enum { SMALTI_MEASURE_STEP = 64 };

/* Multiplies and adds in registers; *sum depends on all results. Returns the number of f32 operations. */
int64_t smalti_measure_fma(int64_t rounds, float *sum);

/* Returns the sum of x[count], in no particular order. */
float smalti_measure_read(int64_t count, const float *x);

/* Computes z = x + y/2, each [count]. */
void smalti_measure_triad(int64_t count, const float *x, const float *y, float *z);
