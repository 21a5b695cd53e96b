/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/attention.h"
#include "codelets/codelets.h"

double smalti_attention_flops(const struct attention_arguments *a)
{
	double keys = 0;
	for (int i = 0; i < SMALTI_MANY; i++)
		keys += (double)a->keys[i];
	return 4.0 * (double)a->queries * keys * (double)a->heads * (double)a->head_dim;
}

double smalti_attention_bytes(const struct attention_arguments *a)
{
	const int64_t width = a->heads * a->head_dim;
	const double state = smalti_bytes(SMALTI_F32, a->queries * a->heads, a->head_dim + 2);
	int64_t keys = 0;
	for (int i = 0; i < SMALTI_MANY; i++)
		keys += a->keys[i];
	return smalti_bytes(a->dtype, (a->last ? 2 : 1) * a->queries + 2 * keys, width) +
	       ((a->first ? 0 : 1) + (a->last ? 0 : 1)) * state;
}

int smalti_cpu_attention(const struct attention_data *data, const struct attention_arguments *a,
			 struct smalti_error *error)
{
	const int64_t width = a->heads * a->head_dim;
	struct smalti_keys blocks[SMALTI_MANY];
	struct smalti_attention attention = {
	    .queries = a->queries,
	    .heads = a->heads,
	    .head_dim = a->head_dim,
	    .q_stride = width,
	    .k_stride = 2 * width,
	    .v_stride = 2 * width,
	    .dtype = a->dtype,
	    .scale = a->scale,
	    .first = a->first,
	    .last = a->last,
	    .bias = data->bias,
	    .bias_length = data->bias ? 2 * a->bias_reach - 1 : 0,
	    .bias_origin = a->bias_reach - 1 + a->first_key - a->first_query,
	    .lse = data->lse,
	};
	for (int i = 0; i < SMALTI_MANY && data->kv[i]; i++)
		blocks[attention.blocks++] =
		    (struct smalti_keys){a->keys[i], data->kv[i],
					 (const char *)data->kv[i] + width * smalti_dtype_bytes(a->dtype)};
	return smalti_attention(&attention, data->q, blocks, data->state, data->y, error);
}
