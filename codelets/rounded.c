/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/rounded.h"
#include "kernels/backward.h"

const void *smalti_rounded(enum smalti_scratch_use use, int64_t count, enum smalti_dtype dtype,
			   enum smalti_dtype compute, const void *x, struct smalti_error *error)
{
	const enum smalti_dtype stored = smalti_product_dtype(compute);
	if (dtype == stored && compute == stored)
		return x;
	void *y = smalti_scratch(use, count * smalti_dtype_bytes(stored), error);
	if (y)
		smalti_operand(count, dtype, x, compute, stored, y);
	return y;
}
