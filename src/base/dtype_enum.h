/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_BASE_DTYPE_ENUM_H
#define SMALTI_BASE_DTYPE_ENUM_H

/* The element types that weights, activations and features are kept in. Included by device kernels, too. */
enum smalti_dtype { SMALTI_F32, SMALTI_F16, SMALTI_BF16 };

#endif
