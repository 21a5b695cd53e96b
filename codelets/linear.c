/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"

double smalti_matmul_bytes(const struct matmul_arguments *a)
{
	return smalti_bytes(a->x_dtype, a->rows, a->in) + smalti_bytes(a->compute, a->in, a->out) +
	       smalti_bytes(a->result, a->rows, a->out);
}

double smalti_matmul_raw_bytes(const struct matmul_raw_arguments *a)
{
	double sum = smalti_bytes(a->matmul.x_dtype, a->matmul.rows, a->matmul.in) +
		     smalti_bytes(a->matmul.result, a->matmul.rows, a->matmul.out);
	for (int i = 0; i < 3; i++)
		sum += smalti_bytes(a->dtype[i], a->part_out[i], a->matmul.in);
	return sum;
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

static struct smalti_matmul matmul_of(const struct matmul_arguments *a)
{
	return (struct smalti_matmul){a->rows, a->in, a->out, a->compute, a->result, a->epilogue};
}

static int multiply(const struct matmul_arguments *a, const void *x, const void *weight, const float *bias,
		    const void *gate, void *y, struct smalti_error *error)
{
	const struct smalti_matmul matmul = matmul_of(a);
	x = operand(a, x, error);
	return x ? smalti_matmul(&matmul, x, weight, bias, gate, y, error) : -1;
}

int smalti_cpu_matmul(const struct matmul_data *data, const struct matmul_arguments *a,
		      struct smalti_error *error)
{
	return multiply(a, data->x, data->weight, data->bias, NULL, data->y, error);
}

int smalti_cpu_matmul_add(const struct matmul_add_data *data, const struct matmul_arguments *a,
			  struct smalti_error *error)
{
	const float *gate = data->gate ? (const float *)data->gate + a->gate_row * a->out : NULL;
	return multiply(a, data->x, data->weight, data->bias, gate, data->y, error);
}

/* Each part makes its columns of y. */
static int multiply_raw(const struct matmul_raw_arguments *a, const void *x, const void *const parts[3],
			const float *bias, const float *gate, void *y, struct smalti_error *error)
{
	struct smalti_matmul matmul = matmul_of(&a->matmul);
	x = operand(&a->matmul, x, error);
	if (!x)
		return -1;
	const struct smalti_raw_columns columns = {x, matmul.in, matmul.in};
	int64_t column = 0;
	for (int i = 0; i < 3 && parts[i]; column += a->part_out[i++]) {
		const struct smalti_raw_weight weight = {parts[i], a->dtype[i], matmul.in};
		matmul.out = a->part_out[i];
		if (smalti_matmul_raw(&matmul, &columns, 1, &weight, bias ? bias + column : NULL,
				      gate ? gate + column : NULL, a->matmul.out,
				      (char *)y + column * smalti_dtype_bytes(matmul.result), error) < 0)
			return -1;
	}
	return 0;
}

int smalti_cpu_matmul_raw(const struct matmul_raw_data *data, const struct matmul_raw_arguments *a,
			  struct smalti_error *error)
{
	const void *const parts[3] = {data->part0, data->part1, data->part2};
	return multiply_raw(a, data->x, parts, data->bias, NULL, data->y, error);
}

int smalti_cpu_matmul_raw_add(const struct matmul_raw_add_data *data, const struct matmul_raw_arguments *a,
			      struct smalti_error *error)
{
	const void *const parts[3] = {data->part0, data->part1, data->part2};
	const float *gate =
	    data->gate ? (const float *)data->gate + a->matmul.gate_row * a->matmul.out : NULL;
	return multiply_raw(a, data->x, parts, data->bias, gate, data->y, error);
}
