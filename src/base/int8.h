/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Rows of integers of 8 bits with a scale: value = scale · integer, integers from −127 to 127. */

/* Returns the scale of a row, max|v| / 127: 0 of zeros, NaN if a value is not finite. */
float smalti_int8_scale(const float *values, int64_t count);
/* Rounds values / scale to nearest, ties to even; zeros if the scale is 0. */
void smalti_int8_round(const float *values, int64_t count, float scale, int8_t *to);

/* In memory each row is followed by zeros up to a multiple of SMALTI_INT8_PAD, and then by its scale, with
 * zeros likewise: so parts of a matrix, of whole rows, have all that they need. */
enum { SMALTI_INT8_PAD = 16 };
/* Returns the bytes from a row's integers to its scale, and to the next row. @{ */
static inline int64_t smalti_int8_scale_at(int64_t columns)
{
	return smalti_round_up(columns, SMALTI_INT8_PAD);
}
static inline int64_t smalti_int8_stride(int64_t columns)
{
	return smalti_int8_scale_at(columns) + SMALTI_INT8_PAD;
}
/* @} */
