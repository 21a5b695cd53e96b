/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/layers/layers.h"

/* Inserts the gradients of the queries and of one block of keys. */
static void keys_backward(struct smalti_tape *tape, const struct smalti_record *r, struct smalti_value keys)
{
	bool add_queries = false, add_keys = false;
	struct smalti_tile *gq = smalti_tape_into_any(tape, r->x, &add_queries);
	struct smalti_tile *gkv = smalti_tape_into_any(tape, keys, &add_keys);
	smalti_insert(attention_backward, tape->task_group,
		      (.q = smalti_tape_tile(tape, r->x), .kv = smalti_tape_tile(tape, keys),
		       .y = smalti_tape_tile(tape, r->y), .lse = smalti_tape_tile(tape, r->lse),
		       .gy = smalti_tape_gradient(tape, r->y), .gq = gq, .gkv = gkv),
		      .queries = r->x.rows, .keys = keys.rows, .heads = r->heads.count,
		      .head_dim = r->heads.dim, .dtype = r->heads.dtype,
		      .scale = smalti_attention_scale(r->heads.dim), .add_queries = add_queries,
		      .add_keys = add_keys);
}

static void attention_backward(struct smalti_tape *tape, const struct smalti_record *r)
{
	for (int64_t i = 0; i < r->count; i++)
		keys_backward(tape, r, r->keys[i]);
}

static const struct smalti_layer attention_layer = {NULL, attention_backward};

/* Leaves the record, with a copy of the keys. */
static void record(struct smalti_tape *tape, const struct smalti_heads *heads, struct smalti_value q,
		   const struct smalti_key_bands *keys, struct smalti_value lse, struct smalti_value y)
{
	const int64_t bytes = keys->blocks * (int64_t)sizeof(*keys->kv);
	struct smalti_record r = {.layer = &attention_layer,
				  .x = q,
				  .y = y,
				  .heads = *heads,
				  .lse = lse,
				  .keys = smalti_task_group_calloc(tape->task_group, 1, bytes),
				  .count = keys->blocks};
	if (!r.keys)
		return;
	memcpy(r.keys, keys->kv, (size_t)bytes);
	for (int64_t i = 0; i < keys->blocks; i++)
		smalti_tape_reads(tape, keys->kv[i]);
	smalti_tape_reads(tape, q);
	smalti_tape_reads(tape, lse);
	smalti_tape_reads(tape, y);
	smalti_tape_record(tape, &r);
}

struct smalti_value smalti_layer_attend(struct smalti_tape *tape, const struct smalti_heads *heads,
					struct smalti_value q, const struct smalti_key_bands *keys)
{
	struct smalti_value lse = {.tile = NULL};
	struct smalti_value y = smalti_value_new(tape, q.rows, heads->count * heads->dim, heads->dtype);
	if (tape->records)
		lse = smalti_value_new(tape, heads->count, q.rows, SMALTI_F32);
	smalti_attend(tape->task_group, heads, q, keys, lse.tile, y.tile);
	if (tape->records)
		record(tape, heads, q, keys, lse, y);
	smalti_value_release(tape, &lse);
	return y;
}
