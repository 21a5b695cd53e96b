/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"

/* The devices' form of a linear layer's bias: `count` values in f32 and, if the layer's products have a dtype
 * of 16 bits, the values rounded to that dtype after them: a product whose result has that dtype adds no
 * other. A bias without the second part, such as a parameter in training, is shorter. */

/* Returns the byte where the rounded values begin, aligned so that products are fast. */
static inline int64_t smalti_bias_rounded(int64_t count)
{
	enum { ALIGNMENT = 256 };
	return smalti_round_up(count * (int64_t)sizeof(float), ALIGNMENT);
}

/* Returns the bytes of the form for products of a dtype. */
static inline int64_t smalti_bias_bytes(int64_t count, enum smalti_dtype dtype)
{
	return dtype == SMALTI_F32 ? count * (int64_t)sizeof(float)
				   : smalti_bias_rounded(count) + count * smalti_dtype_bytes(dtype);
}
