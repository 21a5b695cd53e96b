/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/attention.h"
#include "kernels/attention.h"

#include <math.h>

/* The blocks of keys of one task, from band `first` on. */
static void take_bands(struct attention_arguments *a, struct smalti_tile **blocks,
		       const struct smalti_partition *partition, int64_t rows_per,
		       struct smalti_tile *const *kv, int64_t first)
{
	for (int64_t i = 0; i < SMALTI_MANY; i++) {
		const bool given = first + i < partition->bands;
		blocks[i] = given ? kv[first + i] : NULL;
		a->keys[i] = given ? smalti_partition_rows(partition, first + i) * rows_per : 0;
	}
}

static int64_t state_bytes(const struct attention_arguments *a)
{
	return smalti_attention_state(a->queries, a->heads, a->head_dim) * (int64_t)sizeof(float);
}

struct smalti_tile *smalti_attend(struct smalti_task_group *task_group, const struct smalti_heads *heads,
				  int64_t queries, struct smalti_tile *q,
				  const struct smalti_partition *partition, int64_t rows_per,
				  struct smalti_tile *const *kv)
{
	const int64_t width = heads->count * heads->dim;
	struct smalti_tile *y =
	    smalti_tile_new(task_group, queries, width * smalti_dtype_bytes(heads->dtype));
	struct attention_arguments a = {.queries = queries,
					.heads = heads->count,
					.head_dim = heads->dim,
					.dtype = heads->dtype,
					.scale = (float)(1.0 / sqrt((double)heads->dim))};
	/* More bands of keys than one task takes: one task after the other, the softmax's state between them.
	 */
	struct smalti_tile *state =
	    partition->bands > SMALTI_MANY ? smalti_tile_new(task_group, 1, state_bytes(&a)) : NULL;
	for (int64_t first = 0; first < partition->bands; first += SMALTI_MANY) {
		a.first = first == 0;
		a.last = partition->bands - first <= SMALTI_MANY;
		struct attention_buffers buffers = {.q = q, .state = state, .y = a.last ? y : NULL};
		take_bands(&a, buffers.kv, partition, rows_per, kv, first);
		smalti_insert_attention(task_group, &buffers, &a);
	}
	smalti_tile_release(state);
	return y;
}
