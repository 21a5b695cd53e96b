/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Rows of integers of 8 bits with a scale: value = scale · integer, integers from −127 to 127. */

/* Returns the scale of a row, max|v| / 127: 0 of zeros, NaN if a value is not finite. */
float smalti_int8_scale(const float *values, int64_t count);
/* Rounds values / scale to nearest, ties to even; zeros if the scale is 0. */
void smalti_int8_round(const float *values, int64_t count, float scale, int8_t *to);
