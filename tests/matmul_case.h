/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/matmul.h"

#include <stdbool.h>

/* The expected results of a matrix product, for any form of its weights. */

extern const char *const epilogue_names[SMALTI_EPILOGUES];

/* The dtypes of the computation and of the result. */
enum { MATMUL_DTYPES = 7 };
extern const struct matmul_dtypes {
	enum smalti_dtype compute, result;
} matmul_dtypes[MATMUL_DTYPES];

/* Tells whether this combination exists. */
bool matmul_has(enum smalti_epilogue epilogue, enum smalti_dtype result);

/* Returns the result of a sum z where y was before; `operand` is its element of the operand or of the gate.
 */
double matmul_finish(enum smalti_epilogue epilogue, double z, double y, double operand);

/* Returns the tolerance, relative to the largest result. */
double matmul_tolerance(const struct smalti_matmul *m);
