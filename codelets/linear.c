/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/backward.h"
#include "kernels/kernels.h"
#include "kernels/matmul_w8a8.h"
#include "kernels/scratch.h"

static double result_bytes(const struct matmul_arguments *a)
{
	return smalti_bytes(a->result, (smalti_epilogue_adds(a->epilogue) ? 2 : 1) * a->rows, a->out);
}

double smalti_matmul_bytes(const struct matmul_arguments *a)
{
	return smalti_bytes(a->x_dtype, a->rows, a->in) + smalti_bytes(a->compute, a->in, a->out) +
	       result_bytes(a);
}

double smalti_matmul_raw_bytes(const struct matmul_raw_arguments *a)
{
	double sum = smalti_bytes(a->matmul.x_dtype, a->matmul.rows, a->matmul.in) + result_bytes(&a->matmul);
	for (int i = 0; i < 3; i++)
		sum += smalti_bytes(a->dtype[i], a->part_out[i], a->matmul.in);
	return sum;
}

/* Converts x to the dtype of the products. */
static const void *operand(const struct matmul_arguments *a, const void *x, struct smalti_error *error)
{
	if (a->x_dtype == a->compute)
		return x;
	int64_t count = a->rows * a->in;
	void *converted = smalti_scratch(SMALTI_SCRATCH_ROWS, count * smalti_dtype_bytes(a->compute), error);
	if (converted)
		smalti_kernels()->convert(count, a->x_dtype, x, a->compute, converted);
	return converted;
}

static struct smalti_matmul matmul_of(const struct matmul_arguments *a)
{
	return (struct smalti_matmul){a->rows, a->in, a->out, a->compute, a->result, a->epilogue};
}

int smalti_cpu_matmul(const struct matmul_data *data, const struct matmul_arguments *a,
		      struct smalti_error *error)
{
	const struct smalti_matmul matmul = matmul_of(a);
	const float *gate = data->gate ? (const float *)data->gate + a->gate_row * a->out : NULL;
	const void *x = operand(a, data->x, error);
	return x ? smalti_matmul(&matmul, x, data->weight, data->bias, gate, data->y, error) : -1;
}

/* Computes columns of y by a part of the weight: those from `column` on. */
static int multiply_dense(const struct matmul_raw_data *data, const struct matmul_raw_arguments *a,
			  const struct smalti_raw_weight *weight, int64_t columns, int64_t column,
			  struct smalti_error *error)
{
	const struct matmul_arguments *m = &a->matmul;
	const struct smalti_dense dense = {.rows = m->rows,
					   .inner = m->in,
					   .columns = columns,
					   .turned_b = true,
					   .add = smalti_epilogue_adds(m->epilogue),
					   .a_dtype = m->x_dtype,
					   .b_dtype = weight->dtype,
					   .compute = m->compute,
					   .result = m->result,
					   .bias = data->bias ? (const float *)data->bias + column : NULL,
					   .y_stride = m->out};
	return smalti_dense(&dense, data->x, weight->data,
			    (char *)data->y + column * smalti_dtype_bytes(m->result), error);
}

/* Does the same with x in the dtype of the products. */
static int multiply_raw(const struct matmul_raw_data *data, const struct matmul_raw_arguments *a,
			const void *x, const struct smalti_raw_weight *weight, int64_t columns,
			int64_t column, struct smalti_error *error)
{
	const float *bias = data->bias, *gate = data->gate;
	const int64_t in = a->matmul.in, out = a->matmul.out;
	const struct smalti_raw_columns all = {x, in, in};
	struct smalti_matmul matmul = matmul_of(&a->matmul);
	matmul.out = columns;
	return smalti_matmul_raw(&matmul, &all, 1, weight, bias ? bias + column : NULL,
				 gate ? gate + a->matmul.gate_row * out + column : NULL, out,
				 (char *)data->y + column * smalti_dtype_bytes(matmul.result), error);
}

static int multiply_integers(const struct matmul_raw_data *data, const struct matmul_arguments *a,
			     struct smalti_error *error)
{
	const struct smalti_matmul matmul = matmul_of(a);
	const float *gate = data->gate ? (const float *)data->gate + a->gate_row * a->out : NULL;
	return smalti_matmul_w8a8(&matmul, a->x_dtype, data->x, data->part0, data->bias, gate, data->y,
				  error);
}

/* Has each part make its columns of y. */
int smalti_cpu_matmul_raw(const struct matmul_raw_data *data, const struct matmul_raw_arguments *a,
			  struct smalti_error *error)
{
	if (a->rounds_x)
		return multiply_integers(data, &a->matmul, error);
	const void *const parts[3] = {data->part0, data->part1, data->part2};
	const void *x = a->dense ? data->x : operand(&a->matmul, data->x, error);
	int status = x ? 0 : -1;
	for (int64_t i = 0, column = 0; i < 3 && parts[i] && status == 0; column += a->part_out[i++]) {
		const struct smalti_raw_weight weight = {parts[i], a->dtype[i],
							 smalti_raw_stride(a->dtype[i], a->matmul.in)};
		status = a->dense ? multiply_dense(data, a, &weight, a->part_out[i], column, error)
				  : multiply_raw(data, a, x, &weight, a->part_out[i], column, error);
	}
	return status;
}
