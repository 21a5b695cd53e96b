/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"

double smalti_matmul_bytes(const struct matmul_arguments *a)
{
	const int results = a->epilogue == SMALTI_EPILOGUE_MULTIPLY ? 2 : 1; /* y and its factor */
	return smalti_bytes(a->x_dtype, a->rows, a->in) + smalti_bytes(a->compute, a->in, a->out) +
	       smalti_bytes(a->result, results * a->rows, a->out);
}

/* x in the dtype of the products. */
static const void *operand(const struct matmul_arguments *a, const void *x, struct smalti_error *error)
{
	if (a->x_dtype == a->compute)
		return x;
	int64_t count = a->rows * a->in;
	void *converted = smalti_scratch(SMALTI_SCRATCH_ROWS, count * smalti_dtype_bytes(a->compute), error);
	if (converted)
		smalti_convert(count, a->x_dtype, x, a->compute, converted);
	return converted;
}

static int multiply(const struct matmul_arguments *a, const void *x, const void *weight, const float *bias,
		    const void *factor, void *y, struct smalti_error *error)
{
	const struct smalti_matmul matmul = {a->rows, a->in, a->out, a->compute, a->result, a->epilogue};
	x = operand(a, x, error);
	return x ? smalti_matmul(&matmul, x, weight, bias, factor, y, error) : -1;
}

int smalti_cpu_matmul(const struct matmul_data *data, const struct matmul_arguments *a,
		      struct smalti_error *error)
{
	return multiply(a, data->x, data->weight, data->bias, data->factor, data->y, error);
}

int smalti_cpu_matmul_add(const struct matmul_add_data *data, const struct matmul_arguments *a,
			  struct smalti_error *error)
{
	const float *gate = data->gate ? (const float *)data->gate + a->gate_row * a->out : NULL;
	return multiply(a, data->x, data->weight, data->bias, gate, data->y, error);
}
