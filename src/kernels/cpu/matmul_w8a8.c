/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/matmul_w8a8.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

enum { ROWS = 64 }; /* at a time: they stay in the second cache */

int smalti_matmul_w8a8(const struct smalti_matmul *matmul, enum smalti_dtype x_dtype, const void *x,
		       const void *weights, const float *bias, const void *operand, void *y,
		       struct smalti_error *error)
{
	if (matmul->in < 1 || matmul->in > SMALTI_W8A8_INPUTS || matmul->out < 1 || matmul->rows < 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "product of int8 of %lld rows, %lld in, %lld out: expected 1 to %d in",
				   (long long)matmul->rows, (long long)matmul->in, (long long)matmul->out,
				   SMALTI_W8A8_INPUTS);
	if (smalti_matmul_check_result(matmul, error))
		return -1;
	const struct smalti_cpu_kernels *kernels = smalti_kernels();
	const int64_t stride = smalti_round_up(matmul->in, 2 * SMALTI_INT8_PAD);
	const int64_t sums_bytes = ROWS * matmul->out * (int64_t)sizeof(int32_t);
	char *scratch = smalti_scratch(
	    SMALTI_SCRATCH_PRODUCT,
	    sums_bytes + ROWS * (stride * (int64_t)sizeof(int16_t) + (int64_t)sizeof(float)), error);
	if (!scratch)
		return -1;
	int32_t *sums = (int32_t *)scratch;
	float *scales = (float *)(scratch + sums_bytes);
	void *rounded = scales + ROWS;
	for (int64_t row = 0; row < matmul->rows; row += ROWS) {
		const int64_t rows = smalti_min(ROWS, matmul->rows - row);
		const char *from = (const char *)x + row * matmul->in * smalti_dtype_bytes(x_dtype);
		kernels->w8a8_round(rows, matmul->in, x_dtype, from, rounded, scales);
		kernels->w8a8_sums(rows, matmul->in, matmul->out, rounded, weights, sums);
		kernels->w8a8_finish(matmul, row, rows, scales, weights, bias, operand, sums, y);
	}
	return 0;
}
