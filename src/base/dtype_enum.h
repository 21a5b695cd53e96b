/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The element types of weights, activations and features; weights alone may be 8-bit rows (base/rows8.h),
 * the last three. Device kernels include it, too. */
enum smalti_dtype { SMALTI_F32, SMALTI_F16, SMALTI_BF16, SMALTI_I8, SMALTI_E4M3, SMALTI_E5M2 };
