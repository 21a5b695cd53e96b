/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/matmul_w8a8.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

/* What is computed together: outputs, and so many rows that they stay in the second cache, but no fewer than
 * fill tiles. */
enum { OUTPUTS = 256, ROUNDED_BYTES = 1 << 19, ROWS = 64 };

/* The rows of a product that are computed together, in working memory. */
struct band {
	int64_t rows, row_bytes;
	float *scales;
	int32_t *sums;
	void *rounded;
};

static int open_band(struct band *band, const struct smalti_matmul *matmul, struct smalti_error *error)
{
	band->row_bytes = smalti_w8a8_row_bytes(matmul->in);
	band->rows = smalti_max(ROUNDED_BYTES / band->row_bytes / ROWS, 1) * ROWS;
	const int64_t sums_bytes = band->rows * OUTPUTS * (int64_t)sizeof(int32_t);
	char *scratch =
	    smalti_scratch(SMALTI_SCRATCH_PRODUCT,
			   sums_bytes + band->rows * (band->row_bytes + (int64_t)sizeof(float)), error);
	if (!scratch)
		return -1;
	band->sums = (int32_t *)scratch;
	band->scales = (float *)(scratch + sums_bytes);
	band->rounded = band->scales + band->rows;
	return 0;
}

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
	const int64_t stride = smalti_rows8_stride(matmul->in);
	struct band band;
	if (open_band(&band, matmul, error) < 0)
		return -1;
	for (int64_t row = 0; row < matmul->rows; row += band.rows) {
		const int64_t rows = smalti_min(band.rows, matmul->rows - row);
		const char *from = (const char *)x + row * matmul->in * smalti_dtype_bytes(x_dtype);
		kernels->w8a8_round(rows, matmul->in, x_dtype, from, band.rounded, band.scales);
		for (int64_t first = 0; first < matmul->out; first += OUTPUTS) {
			const int64_t count = smalti_min(OUTPUTS, matmul->out - first);
			const struct smalti_part part = {row, rows, first, count};
			kernels->w8a8_sums(rows, matmul->in, count, band.rounded,
					   (const int8_t *)weights + first * stride, band.sums);
			kernels->w8a8_finish(matmul, &part, band.scales, weights, bias, operand, band.sums,
					     y);
		}
	}
	return 0;
}
