/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/rows8.h"
#include "kernels/matmul.h"

/* Products of integers of 8 bits: each row of x is rounded to rows of int8 as weights are (base/int8.h), with
 * its own scale a; y = epilogue(a·s·Σ x·w + bias), with s the scale of the weights' row. The sums are exact
 * in 32 bits, up to 131072 inputs, so they have the same bits everywhere. A row of x that is not finite makes
 * a row of NaN. */
enum { SMALTI_W8A8_INPUTS = 1 << 17 };

/* Rows and outputs of a product. */
struct smalti_part {
	int64_t row, rows, first, count;
};

/* Bytes behind each rounded row, the rows that there is room for a multiple of, and the bytes of a row in any
 * instruction set's form at most: for kernels.def. */
enum { SMALTI_W8A8_ROW_END = 64, SMALTI_W8A8_ROWS = 16 };
static inline int64_t smalti_w8a8_row_bytes(int64_t in)
{
	return smalti_round_up(in, SMALTI_ROWS8_PAD) * (int64_t)sizeof(int16_t) + SMALTI_W8A8_ROW_END;
}

/* Multiplies x [rows, in], of `x_dtype`, by rows of int8; `compute` of the product is not used. */
int smalti_matmul_w8a8(const struct smalti_matmul *matmul, enum smalti_dtype x_dtype, const void *x,
		       const void *weights, const float *bias, const void *operand, void *y,
		       struct smalti_error *error);
