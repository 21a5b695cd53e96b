/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Rows of 8 bits: each has codes, integers (base/int8.h) or fp8 (base/fp8.h), and a scale; value = scale ·
 * code. In memory a row's codes are followed by zeros up to a multiple of SMALTI_ROWS8_PAD, and then by its
 * scale, f32, with zeros likewise: so parts of a matrix, of whole rows, have all that they need. */
enum { SMALTI_ROWS8_PAD = 16 };

/* Returns the bytes from a row's codes to its scale, and to the next row. @{ */
static inline int64_t smalti_rows8_scale_at(int64_t columns)
{
	return smalti_round_up(columns, SMALTI_ROWS8_PAD);
}
static inline int64_t smalti_rows8_stride(int64_t columns)
{
	return smalti_rows8_scale_at(columns) + SMALTI_ROWS8_PAD;
}
/* @} */
