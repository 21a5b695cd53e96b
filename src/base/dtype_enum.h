/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The element types of weights, activations and features. Device kernels include it, too. */
enum smalti_dtype { SMALTI_F32, SMALTI_F16, SMALTI_BF16 };
