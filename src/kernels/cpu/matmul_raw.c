/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "kernels/elementwise.h"
#include "kernels/matmul.h"
#include "kernels/scratch.h"

#include <math.h>
#include <stdbool.h>

/* Keeps offsets in bytes within 64 bits. */
#define LONGEST ((int64_t)1 << 31)

static int check(const struct smalti_matmul *m, int64_t x_stride, const struct smalti_raw_weight *weight,
		 int64_t y_stride, struct smalti_error *error)
{
	if (m->rows < 0 || m->in < 1 || m->out < 1 || m->rows > LONGEST || m->in > LONGEST ||
	    m->out > LONGEST)
		return smalti_fail(
		    error, SMALTI_EINVAL, "matmul of %lld rows, %lld in, %lld out: expected 1 to %lld",
		    (long long)m->rows, (long long)m->in, (long long)m->out, (long long)LONGEST);
	if (x_stride < m->in || weight->stride < m->in || y_stride < m->out)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "matmul of %lld in, %lld out with strides of x %lld, weights %lld, y %lld: "
		    "expected at least an extent",
		    (long long)m->in, (long long)m->out, (long long)x_stride, (long long)weight->stride,
		    (long long)y_stride);
	if (m->compute != SMALTI_F32 && m->compute != SMALTI_BF16)
		return smalti_fail(error, SMALTI_EINVAL, "a matmul computes in f32 or bf16, not %s",
				   smalti_dtype_name(m->compute));
	bool added = m->epilogue == SMALTI_EPILOGUE_ADD || m->epilogue == SMALTI_EPILOGUE_GATE_ADD;
	if (m->result == SMALTI_F16 || (added && m->result != SMALTI_F32))
		return smalti_fail(error, SMALTI_EINVAL, "a matmul's result cannot be %s%s",
				   smalti_dtype_name(m->result), added ? " where it is added" : "");
	return 0;
}

static float finish(const struct smalti_matmul *m, float z, float gate, float operand, float y)
{
	switch (m->epilogue) {
	case SMALTI_EPILOGUE_GELU:
		return 0.5f * z * (1 + tanhf(0.79788456f * (z + 0.044715f * z * z * z)));
	case SMALTI_EPILOGUE_SILU:
		return z / (1 + expf(-z));
	case SMALTI_EPILOGUE_ADD:
		return y + z;
	case SMALTI_EPILOGUE_GATE_ADD:
		return y + gate * z;
	case SMALTI_EPILOGUE_MULTIPLY:
		return z * operand;
	default:
		return z;
	}
}

static float one(enum smalti_dtype dtype, const void *from, int64_t at)
{
	float value;
	smalti_widen(dtype, (const char *)from + at * smalti_dtype_bytes(dtype), 1, &value);
	return value;
}

int smalti_matmul_raw(const struct smalti_matmul *m, int64_t x_stride, const void *x,
		      const struct smalti_raw_weight *weight, const float *bias, const void *operand,
		      int64_t y_stride, void *y, struct smalti_error *error)
{
	if (check(m, x_stride, weight, y_stride, error))
		return -1;
	float *row = smalti_scratch(SMALTI_SCRATCH_PRODUCT, 2 * m->in * (int64_t)sizeof(float), error);
	if (!row)
		return -1;
	float *left = row + m->in;
	for (int64_t o = 0; o < m->out; o++) {
		smalti_convert(m->in, weight->dtype,
			       (const char *)weight->data +
				   o * weight->stride * smalti_dtype_bytes(weight->dtype),
			       SMALTI_F32, row);
		if (m->compute == SMALTI_BF16)
			for (int64_t k = 0; k < m->in; k++)
				row[k] = smalti_bf16_to_f32(smalti_f32_to_bf16(row[k]));
		for (int64_t r = 0; r < m->rows; r++) {
			smalti_convert(m->in, m->compute,
				       (const char *)x + r * x_stride * smalti_dtype_bytes(m->compute),
				       SMALTI_F32, left);
			double sum = bias ? (double)bias[o] : 0;
			for (int64_t k = 0; k < m->in; k++)
				sum += (double)left[k] * (double)row[k];
			int64_t at = r * y_stride + o;
			bool gate = m->epilogue == SMALTI_EPILOGUE_GATE_ADD;
			bool times = m->epilogue == SMALTI_EPILOGUE_MULTIPLY;
			bool reads = gate || m->epilogue == SMALTI_EPILOGUE_ADD;
			float z = finish(m, (float)sum, gate ? ((const float *)operand)[o] : 0,
					 times ? one(m->result, operand, at) : 0,
					 reads ? ((const float *)y)[at] : 0);
			smalti_narrow(m->result, &z, 1, (char *)y + at * smalti_dtype_bytes(m->result));
		}
	}
	return 0;
}
