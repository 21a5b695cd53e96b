/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"

/* Computes y = x / (1 + exp(-x)). */
void smalti_silu(int64_t count, const float *x, enum smalti_dtype dtype, void *y);
/* Computes y = x·Φ(x), in the form with tanh (docs/reference.md 3.6). */
void smalti_gelu(int64_t count, const float *x, enum smalti_dtype dtype, void *y);

/* Converts x to another dtype (nearest even); faster than smalti_widen() and smalti_narrow(). */
void smalti_convert(int64_t count, enum smalti_dtype from, const void *x, enum smalti_dtype to, void *y);

/* Computes y[i] = x[i] + z[i]; y may be x or z. */
void smalti_add(int64_t count, const float *x, const float *z, float *y);

/* Converts pixels of [-1, 1], f32 [count], to u8: round_half_even(clamp(x·0.5 + 0.5, 0, 1)·255)
 * (docs/reference.md 5.4). */
void smalti_to_u8(int64_t count, const float *x, uint8_t *y);
/* Converts them to 65535 levels. */
void smalti_to_u16(int64_t count, const float *x, uint16_t *y);
