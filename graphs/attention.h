/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "graphs/value.h"

struct smalti_heads {
	int64_t count, dim;
	enum smalti_dtype dtype; /* of q, kv and the result */
};

/* Returns dim^-1/2, the scores' factor. */
float smalti_attention_scale(int64_t head_dim);

/* The keys and values for queries: blocks [rows, 2·heads·dim], in this order. */
struct smalti_key_bands {
	int64_t blocks;
	const struct smalti_value *kv;
	const int *rank; /* a task takes blocks of one rank only; NULL: of any rank */
};

/* Inserts y [queries, heads·dim] = the attention of a block of queries to all keys, scores scaled. lse: NULL,
 * or f32 [heads, queries], as in kernels/attention.h. */
void smalti_attend(struct smalti_task_group *task_group, const struct smalti_heads *heads,
		   struct smalti_value q, const struct smalti_key_bands *keys, struct smalti_tile *lse,
		   struct smalti_tile *y);
