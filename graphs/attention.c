/* SPDX-License-Identifier: Apache-2.0 */
#include "graphs/attention.h"

#include "kernels/attention.h"

#include <math.h>

/* The blocks of keys of one task: bands first … end − 1. */
static void take_bands(struct attention_arguments *a, struct smalti_tile **blocks,
		       const struct smalti_cut *cut, int64_t rows_per, struct smalti_tile *const *kv,
		       int64_t first, int64_t end)
{
	for (int64_t i = 0; i < SMALTI_MANY; i++) {
		const bool given = first + i < end;
		blocks[i] = given ? kv[first + i] : NULL;
		a->keys[i] = given ? smalti_cut_rows(cut, first + i) * rows_per : 0;
	}
}

static int64_t least(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

/* More bands of keys than one task takes: one task after the other, the softmax's state between them. */
static void attend_in_turns(struct smalti_scope *scope, struct attention_arguments *a, struct smalti_tile *q,
			    const struct smalti_cut *cut, int64_t rows_per, struct smalti_tile *const *kv,
			    struct smalti_tile *y)
{
	int64_t floats = smalti_attention_state(a->queries, a->heads, a->head_dim);
	struct smalti_tile *state = smalti_tile_new(scope, 1, floats * (int64_t)sizeof(float));
	struct attention_begin_buffers begin = {.q = q, .state = state};
	struct attention_continue_buffers on = {.q = q, .state = state};
	struct attention_end_buffers end = {.q = q, .state = state, .y = y};
	take_bands(a, begin.kv, cut, rows_per, kv, 0, SMALTI_MANY);
	smalti_insert_attention_begin(scope, &begin, a);
	int64_t first = SMALTI_MANY;
	for (; first + SMALTI_MANY < cut->bands; first += SMALTI_MANY) {
		take_bands(a, on.kv, cut, rows_per, kv, first, first + SMALTI_MANY);
		smalti_insert_attention_continue(scope, &on, a);
	}
	take_bands(a, end.kv, cut, rows_per, kv, first, least(first + SMALTI_MANY, cut->bands));
	smalti_insert_attention_end(scope, &end, a);
	smalti_tile_release(state);
}

struct smalti_tile *smalti_attend(struct smalti_scope *scope, const struct smalti_heads *heads,
				  int64_t queries, struct smalti_tile *q, const struct smalti_cut *cut,
				  int64_t rows_per, struct smalti_tile *const *kv)
{
	const int64_t width = heads->count * heads->dim;
	struct smalti_tile *y = smalti_tile_new(scope, queries, width * smalti_dtype_bytes(heads->dtype));
	struct attention_arguments a = {.queries = queries,
					.heads = heads->count,
					.head_dim = heads->dim,
					.dtype = heads->dtype,
					.scale = (float)(1.0 / sqrt((double)heads->dim))};
	if (cut->bands > SMALTI_MANY) {
		attend_in_turns(scope, &a, q, cut, rows_per, kv, y);
		return y;
	}
	struct attention_buffers buffers = {.q = q, .y = y};
	take_bands(&a, buffers.kv, cut, rows_per, kv, 0, cut->bands);
	smalti_insert_attention(scope, &buffers, &a);
	return y;
}
