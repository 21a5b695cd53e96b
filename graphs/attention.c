/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/attention.h"
#include "kernels/attention.h"

#include <math.h>

/* Returns the block behind the last one of the task that begins with block `first`. */
static int64_t task_end(const struct smalti_key_bands *keys, int64_t first)
{
	int64_t end = first + 1;
	while (end < keys->blocks && end - first < SMALTI_MANY &&
	       (!keys->rank || keys->rank[end] == keys->rank[first]))
		end++;
	return end;
}

static void take_blocks(struct attention_arguments *a, struct smalti_tile **blocks,
			const struct smalti_key_bands *keys, int64_t first, int64_t end)
{
	for (int64_t i = 0; i < SMALTI_MANY; i++) {
		const bool given = first + i < end;
		blocks[i] = given ? keys->kv[first + i].tile : NULL;
		a->keys[i] = given ? keys->kv[first + i].rows : 0;
	}
}

static int64_t state_bytes(const struct attention_arguments *a)
{
	return smalti_attention_state(a->queries, a->heads, a->head_dim) * (int64_t)sizeof(float);
}

float smalti_attention_scale(int64_t head_dim)
{
	return (float)(1.0 / sqrt((double)head_dim));
}

void smalti_attend(struct smalti_task_group *task_group, const struct smalti_heads *heads,
		   struct smalti_value q, const struct smalti_key_bands *keys, struct smalti_tile *lse,
		   struct smalti_tile *y)
{
	struct attention_arguments a = {.queries = q.rows,
					.heads = heads->count,
					.head_dim = heads->dim,
					.dtype = heads->dtype,
					.scale = smalti_attention_scale(heads->dim)};
	/* If there are more keys than one task takes, tasks follow each other and pass on the softmax's
	 * state. */
	struct smalti_tile *state =
	    task_end(keys, 0) < keys->blocks ? smalti_tile_new(task_group, 1, state_bytes(&a)) : NULL;
	for (int64_t first = 0, end; first < keys->blocks; first = end) {
		end = task_end(keys, first);
		a.first = first == 0;
		a.last = end == keys->blocks;
		struct attention_buffers buffers = {
		    .q = q.tile, .state = state, .y = a.last ? y : NULL, .lse = a.last ? lse : NULL};
		take_blocks(&a, buffers.kv, keys, first, end);
		smalti_insert_attention(task_group, &buffers, &a);
	}
	smalti_tile_release(state);
}
