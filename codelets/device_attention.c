/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/device_parts.h"

#include "kernels/attention.h"

/* Launches columns first_column … of the values; a group takes SMALTI_ATTEND_COLUMNS. */
static int launch_attend(struct smalti_device *device, const struct attend_arguments *a, bool tensor,
			 const struct smalti_attend_buffers *buffers, struct smalti_error *error)
{
	static const char *const kernels[][2] = {[SMALTI_F16] = {"attend_f16_wide", "attend_f16_narrow"},
						 [SMALTI_BF16] = {"attend_bf16_wide", "attend_bf16_narrow"}};
	const int64_t max = tensor ? SMALTI_TENSOR_QUERIES : SMALTI_ATTEND_QUERIES;
	const int64_t tiles = a->captions + (a->queries + max - 1) / max;
	const char *kernel = tensor ? kernels[a->dtype][a->columns <= SMALTI_ATTEND_NARROW] : "attend";
	const struct smalti_launch launch = {kernel, tiles * a->heads * a->parts, SMALTI_ATTEND_THREADS};
	return smalti_device_launch(device, &launch, (const struct smalti_device_memory *const *)buffers,
				    (int)(sizeof(*buffers) / sizeof(buffers->q)), a, sizeof(*a), error);
}

/* From so many scores per head on, a device's kernel for single tiles, if any, replaces cuDNN and the general
 * kernels. For heads of 64 columns cuDNN comes first, which is faster (docs/gpu/h200.md). Only this file
 * chooses. */
enum { MIN_TILE_SCORES = 1 << 15, CUDNN_HEAD = 64 };

static struct smalti_device_attend_tile tile_of(const struct attend_arguments *a,
						const struct smalti_attend_buffers *buffers, int block)
{
	return (struct smalti_device_attend_tile){
	    .queries = a->queries,
	    .keys = a->keys[block],
	    .heads = a->heads,
	    .head_dim = a->head_dim,
	    .q_stride = a->q_stride,
	    .kv_stride = a->kv_stride,
	    .k_first = a->k_first,
	    .v_first = a->v_first,
	    .dtype = a->dtype,
	    .scale = a->scale,
	    .first = a->first,
	    .last = a->last,
	    .q = buffers->q,
	    .kv = buffers->kv[block],
	    .state = buffers->state,
	    .y = buffers->y,
	    .lse = buffers->lse,
	};
}

/* Returns the last block that has keys; -1: none has any. */
static int last_block(const struct attend_arguments *a)
{
	int last = SMALTI_MANY - 1;
	while (last >= 0 && a->keys[last] == 0)
		last--;
	return last;
}

/* Returns the bytes of the state between tiles, for which no buffer exists. */
static int64_t scratch_bytes(const struct attend_arguments *a)
{
	return smalti_attention_state(a->queries, a->heads, a->head_dim) * (int64_t)sizeof(float);
}

static bool attends_tiles(struct smalti_device *device, const struct attend_arguments *a,
			  const struct smalti_attend_buffers *buffers)
{
	const int last = last_block(a);
	int64_t keys = 0;
	bool has = a->y_dtype == a->dtype && !buffers->bias && !buffers->starts && a->captions == 0 &&
		   (buffers->state || scratch_bytes(a) <= smalti_device_room(device));
	for (int i = 0; has && i <= last; i++) {
		const struct smalti_device_attend_tile tile = tile_of(a, buffers, i);
		has = a->keys[i] == 0 || smalti_device_attends_tile(device, &tile);
		keys += a->keys[i];
	}
	return has && a->queries * keys >= MIN_TILE_SCORES;
}

/* Attends to each tile by its own launch. */
static int attend_tiles(struct smalti_device *device, const struct attend_arguments *a,
			const struct smalti_attend_buffers *buffers, struct smalti_error *error)
{
	const struct smalti_device_memory *state = buffers->state;
	const int last = last_block(a);
	bool first = a->first;
	for (int i = 0; i <= last; i++) {
		struct smalti_device_attend_tile tile = tile_of(a, buffers, i);
		if (tile.keys == 0)
			continue;
		tile.first = first;
		tile.last = a->last && i == last;
		if (!state && !(tile.first && tile.last) &&
		    !(state = smalti_device_scratch(device, SMALTI_DEVICE_PRODUCT, scratch_bytes(a), error)))
			return -1;
		tile.state = state;
		if (smalti_device_attend_tile(device, &tile, error) < 0)
			return -1;
		first = false;
	}
	return 0;
}

/* Computes the scores again for each part of the values' columns. All parts read the running state, so they
 * follow one another. */
int smalti_device_attend(struct smalti_device *device, const struct attend_arguments *arguments,
			 const struct smalti_attend_buffers *buffers, struct smalti_error *error)
{
	struct attend_arguments a = *arguments;
	const bool tensor = a.dtype != SMALTI_F32 && smalti_device_operands(device, a.dtype) == a.dtype;
	const int64_t max = tensor && a.first && a.last ? a.head_dim : SMALTI_ATTEND_COLUMNS;
	if (attends_tiles(device, &a, buffers))
		return attend_tiles(device, &a, buffers, error);
	for (int64_t column = 0; column < a.head_dim; column += max) {
		a.first_column = column;
		a.columns = smalti_min(a.head_dim - column, max);
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
	    .q = data->q, .bias = data->bias, .state = data->state, .y = data->y, .lse = data->lse};
	memcpy(attend.keys, a->keys, sizeof(attend.keys));
	memcpy(buffers.kv, data->kv, sizeof(data->kv));
	if (a->head_dim != CUDNN_HEAD && attends_tiles(device, &attend, &buffers))
		return attend_tiles(device, &attend, &buffers, error);
	if (a->first && a->last && !data->bias && !data->lse && a->keys[1] == 0 &&
	    smalti_device_has_sdpa(device, &sdpa))
		return smalti_device_sdpa(device, &sdpa, data->q, data->kv[0], NULL, a->scale, data->y,
					  error);
	return smalti_device_attend(device, &attend, &buffers, error);
}
