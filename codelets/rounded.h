/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"
#include "kernels/scratch.h"

/* An operand rounded to `compute`, as smalti_dense() has it: in scratch, where x is not so already. NULL with
 * an error. */
const void *smalti_rounded(enum smalti_scratch_use use, int64_t count, enum smalti_dtype dtype,
			   enum smalti_dtype compute, const void *x, struct smalti_error *error);
