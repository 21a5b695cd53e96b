/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"
#include "kernels/bias_form.h"

/* A product, and its result: y, or what y is made of. */
struct target {
	struct smalti_device_product product;
	struct smalti_device_matrix x;
	const struct smalti_device_memory *z; /* the product's result */
};

/* Sets the bias, in the dtype of the result if it has that form, else in f32. */
static void set_bias(struct smalti_device_product *product, const struct matmul_arguments *a,
		     const struct smalti_device_memory *bias)
{
	const bool rounded = bias && product->result == a->compute && a->compute != SMALTI_F32 &&
			     bias->bytes >= smalti_bias_bytes(a->out, a->compute);
	product->bias = bias;
	product->bias_dtype = rounded ? a->compute : SMALTI_F32;
	product->bias_first = rounded ? smalti_bias_rounded(a->out) / smalti_dtype_bytes(a->compute) : 0;
}

/* Tells whether the product may make z in bf16, with its bias, for a kernel that adds it to y. In f16 a sum
 * may be too large. */
static bool can_add_gated(const struct matmul_arguments *a)
{
	return a->epilogue == SMALTI_EPILOGUE_GATE_ADD && a->compute == SMALTI_BF16 &&
	       a->out % SMALTI_EIGHT == 0;
}

/* Has the product make z in scratch. */
static int make_z(struct smalti_device *device, const struct matmul_arguments *a,
		  const struct smalti_device_memory *bias, struct target *target, struct smalti_error *error)
{
	struct smalti_device_product *product = &target->product;
	product->adds = product->gelu = false;
	product->result = SMALTI_BF16;
	set_bias(product, a, bias);
	if (!can_add_gated(a) || !smalti_device_makes(device, product)) {
		product->result = SMALTI_F32;
		product->bias = NULL;
	}
	target->z = smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT,
					  a->rows * a->out * smalti_dtype_bytes(product->result), error);
	return target->z ? 0 : -1;
}

/* Has the product make y itself if the device adds the bias and has GELU and y's dtype; else z. */
static int begin(struct smalti_device *device, const struct matmul_arguments *a,
		 const struct smalti_device_memory *x, const struct smalti_device_memory *bias,
		 const struct smalti_device_memory *y, struct target *target, struct smalti_error *error)
{
	const struct operand_arguments operand = {a->rows,    a->in,      0,         a->in,
						  a->x_dtype, a->compute, a->compute};
	struct smalti_device_product *product = &target->product;
	if (smalti_device_operand(device, SMALTI_DEVICE_X, x, &operand, &target->x, error) < 0)
		return -1;
	*product = (struct smalti_device_product){.rows = a->rows,
						  .in = a->in,
						  .out = a->out,
						  .x_first = target->x.first,
						  .x_stride = target->x.stride,
						  .y_stride = a->out,
						  .adds = a->epilogue == SMALTI_EPILOGUE_ADD,
						  .gelu = a->epilogue == SMALTI_EPILOGUE_GELU,
						  .dtype = target->x.dtype,
						  .result = a->result};
	set_bias(product, a, bias);
	target->z = y;
	if ((a->epilogue == SMALTI_EPILOGUE_NONE || product->adds || product->gelu) &&
	    smalti_device_makes(device, product))
		return 0;
	return make_z(device, a, bias, target, error);
}

/* Computes columns first … of z with W [columns, in] in `dtype`. */
static int multiply(struct smalti_device *device, const struct matmul_arguments *a,
		    const struct smalti_device_memory *weight, enum smalti_dtype dtype, int64_t first,
		    int64_t columns, const struct target *target, struct smalti_error *error)
{
	const struct operand_arguments operand = {
	    columns, a->in, 0, smalti_raw_stride(dtype, a->in), dtype, a->compute, a->compute};
	struct smalti_device_product product = target->product;
	struct smalti_device_matrix w;
	if (smalti_device_operand(device, SMALTI_DEVICE_WEIGHT, weight, &operand, &w, error) < 0)
		return -1;
	product.out = columns;
	product.w_first = w.first;
	product.w_stride = w.stride;
	product.y_first = first;
	product.bias_first += first;
	return smalti_device_product(device, &product, target->x.memory, w.memory, target->z, error);
}

static int finish(struct smalti_device *device, const struct matmul_arguments *a, const struct target *target,
		  const struct smalti_device_memory *bias, const struct smalti_device_memory *gate,
		  const struct smalti_device_memory *y, struct smalti_error *error)
{
	const struct smalti_device_memory *const gated[] = {target->z, gate, y};
	if (target->z == y)
		return 0;
	if (target->product.result == SMALTI_BF16)
		return smalti_device_elements(device, "add_gated_eights", a->rows * a->out / SMALTI_EIGHT,
					      gated, a, error);
	return smalti_device_epilogue(device, a, target->z, bias, gate, y, error);
}

int smalti_device_matmul(struct smalti_device *device, const struct matmul_memories *data,
			 const struct matmul_arguments *a, struct smalti_error *error)
{
	struct target target;
	if (begin(device, a, data->x, data->bias, data->y, &target, error) < 0 ||
	    multiply(device, a, data->weight, a->compute, 0, a->out, &target, error) < 0)
		return -1;
	return finish(device, a, &target, data->bias, data->gate, data->y, error);
}

int smalti_device_round_rows(struct smalti_device *device, const struct integer_product_arguments *a,
			     const struct smalti_device_memory *x, struct smalti_device_integers *rounded,
			     struct smalti_error *error)
{
	rounded->rows = smalti_device_scratch(device, SMALTI_DEVICE_X, a->rows * a->in, error);
	rounded->scales = rounded->rows ? smalti_device_scratch(device, SMALTI_DEVICE_ROUNDED,
								a->rows * (int64_t)sizeof(float), error)
					: NULL;
	const struct smalti_device_memory *const buffers[] = {x, rounded->rows, rounded->scales};
	return rounded->scales ? smalti_device_groups(device, "round_rows", a->rows, buffers, a, error) : -1;
}

int smalti_device_integer_product(struct smalti_device *device, const struct integer_product_arguments *a,
				  const struct smalti_device_integers *x,
				  const struct smalti_device_memory *weight,
				  const struct smalti_device_memory *z, struct smalti_error *error)
{
	const int64_t stride = smalti_raw_stride(SMALTI_I8, a->in);
	const struct smalti_device_product product = {.rows = a->rows,
						      .in = a->in,
						      .out = a->out,
						      .x_stride = a->in,
						      .w_first = a->w_row * stride,
						      .w_stride = stride,
						      .y_first = a->z_first,
						      .y_stride = a->z_stride,
						      .dtype = SMALTI_I8};
	const struct smalti_device_memory *const buffers[] = {x->rows, x->scales, weight, z};
	const struct smalti_device_memory *const scaled[] = {x->scales, weight, z};
	if (!smalti_device_makes(device, &product))
		return smalti_device_elements(device, "multiply_integers", a->rows * a->out, buffers, a,
					      error);
	if (smalti_device_product(device, &product, x->rows, weight, z, error) < 0)
		return -1;
	return smalti_device_elements(device, "scale_integers", a->rows * a->out, scaled, a, error);
}

static int multiply_integers(struct smalti_device *device, const struct matmul_raw_memories *data,
			     const struct matmul_arguments *a, struct smalti_error *error)
{
	const struct integer_product_arguments product = {
	    .rows = a->rows, .in = a->in, .out = a->out, .z_stride = a->out, .dtype = a->x_dtype};
	struct smalti_device_integers x;
	const struct smalti_device_memory *z = smalti_device_scratch(
	    device, SMALTI_DEVICE_PRODUCT, a->rows * a->out * (int64_t)sizeof(float), error);
	if (!z || smalti_device_round_rows(device, &product, data->x, &x, error) < 0 ||
	    smalti_device_integer_product(device, &product, &x, data->part0, z, error) < 0)
		return -1;
	return smalti_device_epilogue(device, a, z, data->bias, data->gate, data->y, error);
}

/* Has each part make its columns. */
int smalti_device_matmul_raw(struct smalti_device *device, const struct matmul_raw_memories *data,
			     const struct matmul_raw_arguments *a, struct smalti_error *error)
{
	const struct smalti_device_memory *const parts[3] = {data->part0, data->part1, data->part2};
	struct target target;
	if (a->rounds_x)
		return multiply_integers(device, data, &a->matmul, error);
	if (begin(device, &a->matmul, data->x, data->bias, data->y, &target, error) < 0)
		return -1;
	for (int64_t i = 0, first = 0; i < 3 && parts[i]; first += a->part_out[i++])
		if (multiply(device, &a->matmul, parts[i], a->dtype[i], first, a->part_out[i], &target,
			     error) < 0)
			return -1;
	return finish(device, &a->matmul, &target, data->bias, data->gate, data->y, error);
}
