/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

/* z f32 [rows, out], columns first … of which are x·Wᵀ; W [columns, in] in `dtype`. */
static int multiply(struct smalti_device *device, const struct matmul_arguments *a,
		    const struct smalti_device_matrix *x, const struct smalti_device_memory *weight,
		    enum smalti_dtype dtype, int64_t first, int64_t columns,
		    const struct smalti_device_memory *z, struct smalti_error *error)
{
	const struct operand_arguments operand = {columns, a->in, 0, a->in, dtype, a->compute, a->compute};
	struct smalti_device_matrix w;
	if (smalti_device_operand(device, SMALTI_DEVICE_WEIGHT, weight, &operand, &w, error) < 0)
		return -1;
	const struct smalti_device_product product = {.rows = a->rows,
						      .in = a->in,
						      .out = columns,
						      .x_first = x->first,
						      .x_stride = x->stride,
						      .w_first = w.first,
						      .w_stride = w.stride,
						      .y_first = first,
						      .y_stride = a->out,
						      .dtype = w.dtype};
	return smalti_device_product(device, &product, x->memory, w.memory, z, error);
}

/* What a matrix product is made of: x as products take it, and room for z. */
static int begin(struct smalti_device *device, const struct matmul_arguments *a,
		 const struct smalti_device_memory *given, struct smalti_device_matrix *x,
		 const struct smalti_device_memory **z, struct smalti_error *error)
{
	const struct operand_arguments operand = {a->rows,    a->in,      0,         a->in,
						  a->x_dtype, a->compute, a->compute};
	*z = smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT, a->rows * a->out * (int64_t)sizeof(float),
				   error);
	return *z ? smalti_device_operand(device, SMALTI_DEVICE_X, given, &operand, x, error) : -1;
}

static int finish(struct smalti_device *device, const struct matmul_arguments *a,
		  const struct smalti_device_memory *z, const struct smalti_device_memory *bias,
		  const struct smalti_device_memory *gate, const struct smalti_device_memory *y,
		  struct smalti_error *error)
{
	const struct smalti_device_memory *const buffers[] = {z, bias, gate, y};
	return smalti_device_elements(device, "epilogue", a->rows * a->out, buffers, a, error);
}

int smalti_device_matmul(struct smalti_device *device, const struct matmul_memories *data,
			 const struct matmul_arguments *a, struct smalti_error *error)
{
	const struct smalti_device_memory *z;
	struct smalti_device_matrix x;
	if (begin(device, a, data->x, &x, &z, error) < 0 ||
	    multiply(device, a, &x, data->weight, a->compute, 0, a->out, z, error) < 0)
		return -1;
	return finish(device, a, z, data->bias, data->gate, data->y, error);
}

/* Each part makes its columns. */
int smalti_device_matmul_raw(struct smalti_device *device, const struct matmul_raw_memories *data,
			     const struct matmul_raw_arguments *a, struct smalti_error *error)
{
	const struct smalti_device_memory *const parts[3] = {data->part0, data->part1, data->part2};
	const struct smalti_device_memory *z;
	struct smalti_device_matrix x;
	if (begin(device, &a->matmul, data->x, &x, &z, error) < 0)
		return -1;
	for (int64_t i = 0, first = 0; i < 3 && parts[i]; first += a->part_out[i++])
		if (multiply(device, &a->matmul, &x, parts[i], a->dtype[i], first, a->part_out[i], z, error) <
		    0)
			return -1;
	return finish(device, &a->matmul, z, data->bias, data->gate, data->y, error);
}
