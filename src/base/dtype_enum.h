/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The element types that weights, activations and features are kept in. Included by device kernels, too. */
enum smalti_dtype { SMALTI_F32, SMALTI_F16, SMALTI_BF16 };
