/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "kernels/conv_band.h"

double smalti_conv_result_bytes(const struct conv_arguments *a)
{
	const int64_t scale = a->upsample ? 4 : 1;
	return smalti_bytes(SMALTI_F32, scale * a->rows * a->width / (a->stride == 2 ? 4 : 1), a->out);
}

double smalti_conv_bytes(const struct conv_arguments *a)
{
	return smalti_bytes(SMALTI_F32, a->rows * a->width, a->in) +
	       smalti_bytes(a->compute, 9 * a->in, a->out) +
	       (a->residual ? 2 : 1) * smalti_conv_result_bytes(a);
}

int smalti_cpu_read_rows(const struct read_rows_data *data, const struct read_rows_arguments *a,
			 struct smalti_error *error)
{
	return a->source(a->user, a->first, a->rows, a->width, data->y, error);
}

int smalti_cpu_conv(const struct conv_data *data, const struct conv_arguments *a, struct smalti_error *error)
{
	const struct smalti_conv_band band = {
	    .rows = a->rows,
	    .width = a->width,
	    .in = a->in,
	    .out = a->out,
	    .groups = a->groups,
	    .y_groups = a->y_groups,
	    .stride = a->stride,
	    .epsilon = a->epsilon,
	    .upsample = a->upsample,
	    .residual = a->residual,
	    .compute = a->compute,
	    .x = data->x,
	    .above = data->above,
	    .below = data->below,
	    .moments = data->moments,
	    .gamma = data->gamma,
	    .beta = data->beta,
	    .weight = data->weight,
	    .bias = data->bias,
	    .y = data->y,
	    .top = data->top,
	    .bottom = data->bottom,
	    .y_moments = data->y_moments,
	};
	return smalti_conv_band(&band, error);
}

int smalti_cpu_offload(const struct offload_data *data, const struct offload_arguments *a,
		       struct smalti_error *error)
{
	return a->write(a->user, a->offset, a->bytes, data->x, error);
}

int smalti_cpu_fetch(const struct fetch_data *data, const struct fetch_arguments *a,
		     struct smalti_error *error)
{
	return a->read(a->user, a->offset, a->bytes, a->last, data->y, error);
}

int smalti_cpu_emit_rows(const struct emit_rows_data *data, const struct emit_rows_arguments *a,
			 struct smalti_error *error)
{
	return a->sink(a->user, a->first, a->rows, a->width, data->x, error);
}
