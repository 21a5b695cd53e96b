/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/cpu/onednn.h"

/* A matmul that oneDNN does in one go. All of its matrices are dense: for strided ones it has only reference
 * code. */
struct smalti_product {
	int64_t rows, in, out;
	enum smalti_dtype operands, result;
	enum smalti_epilogue epilogue;
	bool bias;
};

/* Returns the layout of weights [in, out]: oneDNN's choice for a typical number of rows, used for all. NULL
 * with an error; free with smalti_layout_free(). */
smalti_layout smalti_product_layout(int64_t in, int64_t out, enum smalti_dtype operands,
				    struct smalti_error *error);

int smalti_product_run(const struct smalti_product *product, const void *x, const void *weights,
		       const float *bias, const void *operand, void *y, struct smalti_error *error);
