/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/matmul.h"

/* Products of integers of 8 bits: each row of x is rounded to rows of int8 as weights are (base/int8.h), with
 * its own scale a; y = epilogue(a·s·Σ x·w + bias), with s the scale of the weights' row. The sums are exact
 * in 32 bits, up to 131072 inputs, so they have the same bits everywhere. A row of x that is not finite makes
 * a row of NaN. */
enum { SMALTI_W8A8_INPUTS = 1 << 17 };

/* Multiplies x [rows, in], of `x_dtype`, by rows of int8; `compute` of the product is not used. */
int smalti_matmul_w8a8(const struct smalti_matmul *matmul, enum smalti_dtype x_dtype, const void *x,
		       const void *weights, const float *bias, const void *operand, void *y,
		       struct smalti_error *error);
