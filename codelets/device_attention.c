/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

/* The scores are computed again for each part of the values' columns. */
int smalti_device_attend(struct smalti_device *device, const struct attend_arguments *arguments,
			 const struct smalti_attend_buffers *buffers, struct smalti_error *error)
{
	struct attend_arguments a = *arguments;
	const int64_t tiles = a.captions + (a.queries + SMALTI_ATTEND_QUERIES - 1) / SMALTI_ATTEND_QUERIES;
	const struct smalti_launch launch = {"attend", tiles * a.heads, SMALTI_ATTEND_THREADS};
	for (int64_t column = 0; column < a.head_dim; column += SMALTI_ATTEND_COLUMNS) {
		const int64_t left = a.head_dim - column;
		a.first_column = column;
		a.columns = left < SMALTI_ATTEND_COLUMNS ? left : SMALTI_ATTEND_COLUMNS;
		if (smalti_device_launch(device, &launch, (const struct smalti_device_memory *const *)buffers,
					 (int)(sizeof(*buffers) / sizeof(buffers->q)), &a, sizeof(a),
					 error) < 0)
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
