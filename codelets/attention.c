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
	int64_t keys = 0;
	for (int i = 0; i < SMALTI_MANY; i++)
		keys += a->keys[i];
	return smalti_bytes(a->dtype, a->queries + 2 * keys, a->heads * a->head_dim);
}

double smalti_attention_state_bytes(const struct attention_arguments *a)
{
	return smalti_bytes(SMALTI_F32, 1, smalti_attention_state(a->queries, a->heads, a->head_dim));
}

/* What the four codelets have in common: all blocks of keys of the task, in order. `begins` and `ends` say
 * whether the first and the last block of the sequence are among them. */
struct attending {
	const struct attention_arguments *a;
	bool begins, ends;
	const void *q, *const *kv;
	const float *bias;
	float *state; /* NULL when it begins and ends here */
	void *y;
};

static int attend(const struct attending *t, struct smalti_error *error)
{
	const struct attention_arguments *a = t->a;
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
	    .first = t->begins,
	    .last = t->ends,
	    .bias = t->bias,
	    .bias_length = t->bias ? 2 * a->bias_reach - 1 : 0,
	    .bias_origin = a->bias_reach - 1 + a->first_key - a->first_query,
	};
	for (int i = 0; i < SMALTI_MANY && t->kv[i]; i++)
		blocks[attention.blocks++] = (struct smalti_keys){
		    a->keys[i], t->kv[i], (const char *)t->kv[i] + width * smalti_dtype_bytes(a->dtype)};
	return smalti_attention(&attention, t->q, blocks, t->state, t->y, error);
}

int smalti_cpu_attention(const struct attention_data *data, const struct attention_arguments *a,
			 struct smalti_error *error)
{
	const struct attending t = {a, true, true, data->q, data->kv, data->bias, NULL, data->y};
	return attend(&t, error);
}

int smalti_cpu_attention_begin(const struct attention_begin_data *data, const struct attention_arguments *a,
			       struct smalti_error *error)
{
	const struct attending t = {a, true, false, data->q, data->kv, data->bias, data->state, NULL};
	return attend(&t, error);
}

int smalti_cpu_attention_continue(const struct attention_continue_data *data,
				  const struct attention_arguments *a, struct smalti_error *error)
{
	const struct attending t = {a, false, false, data->q, data->kv, data->bias, data->state, NULL};
	return attend(&t, error);
}

int smalti_cpu_attention_end(const struct attention_end_data *data, const struct attention_arguments *a,
			     struct smalti_error *error)
{
	const struct attending t = {a, false, true, data->q, data->kv, data->bias, data->state, data->y};
	return attend(&t, error);
}
