/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/backward.h"
#include "codelets/codelets.h"
#include "kernels/kernels.h"

int smalti_cpu_linear_input(const struct linear_input_data *data, const struct linear_input_arguments *a,
			    struct smalti_error *error)
{
	const struct smalti_dense dense = {.rows = a->rows,
					   .inner = a->out,
					   .columns = a->in,
					   .add = a->add,
					   .b_dtype = a->dtype,
					   .compute = a->compute,
					   .a_stride = a->stride};
	return smalti_dense(&dense, (const float *)data->gy + a->first, data->weight, data->gx, error);
}

int smalti_cpu_linear_weight(const struct linear_weight_data *data, const struct linear_weight_arguments *a,
			     struct smalti_error *error)
{
	const struct smalti_dense dense = {.rows = a->out,
					   .inner = a->rows,
					   .columns = a->in,
					   .turned_a = true,
					   .add = a->add,
					   .b_dtype = a->dtype,
					   .compute = a->compute,
					   .a_stride = a->stride};
	const float *gy = (const float *)data->gy + a->first;
	if (data->gbias)
		smalti_kernels()->column_sums(a->rows, a->out, a->stride, gy, a->add, data->gbias);
	return smalti_dense(&dense, gy, data->x, data->gweight, error);
}

int smalti_cpu_ln_modulate_backward(const struct ln_modulate_backward_data *data,
				    const struct ln_modulate_backward_arguments *a,
				    struct smalti_error *error)
{
	(void)error;
	const struct smalti_layernorm_backward layernorm = {a->rows, a->dim, a->epsilon, a->add};
	float *gmodulation = data->gmodulation;
	smalti_kernels()->layernorm_modulate_backward(
	    &layernorm, data->x, (const float *)data->modulation + a->scale_row * a->dim, data->gy, data->gx,
	    gmodulation + a->shift_row * a->dim, gmodulation + a->scale_row * a->dim);
	return 0;
}

int smalti_cpu_add_columns(const struct add_columns_data *data, const struct add_columns_arguments *a,
			   struct smalti_error *error)
{
	(void)error;
	const float *x = data->x;
	float *y = data->y;
	for (int64_t row = 0; row < a->rows; row++) {
		float *columns = y + row * a->stride + a->first;
		smalti_kernels()->add(a->columns, x + row * a->columns, columns, columns);
	}
	return 0;
}
