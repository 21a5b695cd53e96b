/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention.h"
#include "codelets/codelets.h"

/* One block of keys; `first` and `last` say which of them it is. */
static int attend(const struct attention_arguments *a, bool first, bool last, const void *q, const void *kv,
		  const float *bias, float *state, void *y, struct smalti_error *error)
{
	const int64_t width = a->heads * a->head_dim;
	const struct smalti_attention attention = {
	    .queries = a->queries,
	    .keys = a->keys,
	    .heads = a->heads,
	    .head_dim = a->head_dim,
	    .q_stride = width,
	    .k_stride = 2 * width,
	    .v_stride = 2 * width,
	    .dtype = a->dtype,
	    .scale = a->scale,
	    .first = first,
	    .last = last,
	    .bias = bias,
	    .bias_length = bias ? 2 * a->bias_reach - 1 : 0,
	    .bias_origin = a->bias_reach - 1 + a->first_key - a->first_query,
	};
	const char *values = (const char *)kv + width * smalti_dtype_bytes(a->dtype);
	return smalti_attention(&attention, q, kv, values, state, y, error);
}

int smalti_cpu_attention(const struct attention_data *data, const struct attention_arguments *a,
			 struct smalti_error *error)
{
	return attend(a, true, true, data->q, data->kv, data->bias, NULL, data->y, error);
}

int smalti_cpu_attention_begin(const struct attention_begin_data *data, const struct attention_arguments *a,
			       struct smalti_error *error)
{
	return attend(a, true, false, data->q, data->kv, data->bias, data->state, NULL, error);
}

int smalti_cpu_attention_continue(const struct attention_continue_data *data,
				  const struct attention_arguments *a, struct smalti_error *error)
{
	return attend(a, false, false, data->q, data->kv, data->bias, data->state, NULL, error);
}

int smalti_cpu_attention_end(const struct attention_end_data *data, const struct attention_arguments *a,
			     struct smalti_error *error)
{
	return attend(a, false, true, data->q, data->kv, data->bias, data->state, data->y, error);
}
