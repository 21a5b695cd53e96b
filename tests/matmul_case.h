/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/matmul.h"

#include <stdbool.h>

/* What a matrix product should give, whatever form its weights are in. */

extern const char *const epilogue_names[SMALTI_EPILOGUES];

/* What is computed in and what comes out. */
enum { MATMUL_DTYPES = 7 };
extern const struct matmul_dtypes {
	enum smalti_dtype compute, result;
} matmul_dtypes[MATMUL_DTYPES];

/* Whether this combination exists. */
bool matmul_has(enum smalti_epilogue epilogue, enum smalti_dtype result);

/* The result of a sum z where y stood before; `operand` is its element of the operand or of the gate. */
double matmul_finish(enum smalti_epilogue epilogue, double z, double y, double operand);

/* Relative to the largest result. */
double matmul_tolerance(const struct smalti_matmul *m);
