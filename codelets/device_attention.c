/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

/* Columns first_column … of the values, of which groups take SMALTI_ATTEND_COLUMNS each. */
static int launch_attend(struct smalti_device *device, const struct attend_arguments *a, bool tensor,
			 const struct smalti_attend_buffers *buffers, struct smalti_error *error)
{
	static const char *const kernels[][2] = {[SMALTI_F16] = {"attend_f16_wide", "attend_f16_narrow"},
						 [SMALTI_BF16] = {"attend_bf16_wide", "attend_bf16_narrow"}};
	const int64_t most = tensor ? SMALTI_TENSOR_QUERIES : SMALTI_ATTEND_QUERIES;
	const int64_t tiles = a->captions + (a->queries + most - 1) / most;
	const char *kernel = tensor ? kernels[a->dtype][a->columns <= SMALTI_ATTEND_NARROW] : "attend";
	const struct smalti_launch launch = {kernel, tiles * a->heads * a->parts, SMALTI_ATTEND_THREADS};
	return smalti_device_launch(device, &launch, (const struct smalti_device_memory *const *)buffers,
				    (int)(sizeof(*buffers) / sizeof(buffers->q)), a, sizeof(*a), error);
}

/* The scores are computed again for each part of the values' columns. What travels is read by all of them, so
 * they follow one another. */
int smalti_device_attend(struct smalti_device *device, const struct attend_arguments *arguments,
			 const struct smalti_attend_buffers *buffers, struct smalti_error *error)
{
	struct attend_arguments a = *arguments;
	const bool tensor = a.dtype != SMALTI_F32 && smalti_device_operands(device, a.dtype) == a.dtype;
	const int64_t most = tensor && a.first && a.last ? a.head_dim : SMALTI_ATTEND_COLUMNS;
	for (int64_t column = 0; column < a.head_dim; column += most) {
		a.first_column = column;
		a.columns = smalti_min(a.head_dim - column, most);
		a.parts = (a.columns + SMALTI_ATTEND_COLUMNS - 1) / SMALTI_ATTEND_COLUMNS;
		if (launch_attend(device, &a, tensor, buffers, error) < 0)
			return -1;
	}
	return 0;
}

int smalti_device_attention(struct smalti_device *device, const struct attention_memories *data,
			    const struct attention_arguments *a, struct smalti_error *error)
{
	const int64_t width = a->heads * a->head_dim;
	const struct smalti_device_sdpa sdpa = {a->queries,  a->keys[0], a->heads,
						a->head_dim, a->dtype,   false};
	if (a->first && a->last && !data->bias && a->keys[1] == 0 && smalti_device_has_sdpa(device, &sdpa))
		return smalti_device_sdpa(device, &sdpa, data->q, data->kv[0], NULL, a->scale, data->y,
					  error);
	if (smalti_device_attends_wide(device, data, a))
		return smalti_device_attend_wide(device, data, a, error);
	struct attend_arguments attend = {
	    .queries = a->queries,
	    .heads = a->heads,
	    .head_dim = a->head_dim,
	    .q_stride = width,
	    .kv_stride = 2 * width,
	    .v_first = width,
	    .bias_length = 2 * a->bias_reach - 1,
	    .bias_origin = a->bias_reach - 1 + a->first_key - a->first_query,
	    .dtype = a->dtype,
	    .y_dtype = a->dtype,
	    .scale = a->scale,
	    .first = a->first,
	    .last = a->last,
	};
	struct smalti_attend_buffers buffers = {
	    .q = data->q, .bias = data->bias, .state = data->state, .y = data->y};
	memcpy(attend.keys, a->keys, sizeof(attend.keys));
	memcpy(buffers.kv, data->kv, sizeof(data->kv));
	return smalti_device_attend(device, &attend, &buffers, error);
}

int smalti_device_attention_lse(struct smalti_device *device, const struct attention_lse_memories *data,
				const struct attention_lse_arguments *a, struct smalti_error *error)
{
	const int64_t width = a->heads * a->head_dim;
	const struct attend_arguments attend = {.queries = a->queries,
						.heads = a->heads,
						.head_dim = a->head_dim,
						.q_stride = width,
						.kv_stride = width,
						.keys = {a->keys},
						.dtype = a->dtype,
						.y_dtype = a->dtype,
						.scale = a->scale,
						.first = a->first,
						.last = a->last};
	const struct smalti_attend_buffers buffers = {.q = data->q,
						      .kv = {data->k},
						      .values = data->v,
						      .state = data->state,
						      .y = data->y,
						      .lse = data->lse};
	return smalti_device_attend(device, &attend, &buffers, error);
}
