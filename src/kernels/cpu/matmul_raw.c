/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/scratch.h"

/* Keeps offsets in bytes within 64 bits. */
#define LONGEST ((int64_t)1 << 30)

static int check_x(const struct smalti_matmul *m, const struct smalti_raw_columns *x, int parts,
		   struct smalti_error *error)
{
	int64_t columns = 0;
	for (int i = 0; i < parts; i++) {
		if (x[i].count < 1 || x[i].count > m->in || x[i].stride < x[i].count || x[i].stride > LONGEST)
			return smalti_fail(error, SMALTI_EINVAL,
					   "matmul: part %d of x has %lld columns with a stride of %lld: "
					   "expected 1 to %lld",
					   i, (long long)x[i].count, (long long)x[i].stride,
					   (long long)m->in);
		columns += x[i].count;
	}
	if (columns != m->in)
		return smalti_fail(error, SMALTI_EINVAL, "matmul: x has %lld columns, expected %lld",
				   (long long)columns, (long long)m->in);
	return 0;
}

static int check(const struct smalti_matmul *m, const struct smalti_raw_weight *weight, int64_t y_stride,
		 struct smalti_error *error)
{
	if (m->rows < 0 || m->in < 1 || m->out < 1 || m->rows > LONGEST || m->in > LONGEST ||
	    m->out > LONGEST)
		return smalti_fail(
		    error, SMALTI_EINVAL, "matmul of %lld rows, %lld in, %lld out: expected 1 to %lld",
		    (long long)m->rows, (long long)m->in, (long long)m->out, (long long)LONGEST);
	if (weight->stride < m->in || y_stride < m->out || weight->stride > LONGEST || y_stride > LONGEST)
		return smalti_fail(error, SMALTI_EINVAL,
				   "matmul of %lld in, %lld out with strides of weights %lld, y %lld: "
				   "expected an extent to %lld",
				   (long long)m->in, (long long)m->out, (long long)weight->stride,
				   (long long)y_stride, (long long)LONGEST);
	return smalti_matmul_check_result(m, error);
}

int smalti_matmul_raw(const struct smalti_matmul *matmul, const struct smalti_raw_columns *x, int parts,
		      const struct smalti_raw_weight *weight, const float *bias, const void *operand,
		      int64_t y_stride, void *y, struct smalti_error *error)
{
	if (check(matmul, weight, y_stride, error) || check_x(matmul, x, parts, error))
		return -1;
	if (!matmul->rows)
		return 0;
	const struct smalti_cpu_kernels *kernels = smalti_kernels();
	int64_t bytes = kernels->matmul_raw_scratch(matmul, x, parts) * (int64_t)sizeof(float);
	float *scratch = smalti_scratch(SMALTI_SCRATCH_PRODUCT, bytes, error);
	if (!scratch)
		return -1;
	kernels->matmul_raw(matmul, x, parts, weight, bias, operand, y_stride, y, scratch);
	return 0;
}
