/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "rt/grid.h"

struct smalti_heads {
	int64_t count, dim;
	enum smalti_dtype dtype; /* of q, kv and the result */
};

/* Returns dim^-1/2, the scores' factor. */
float smalti_attention_scale(int64_t head_dim);

/* The keys and values for queries: blocks that are tiles [rows[i], 2·heads·dim], in this order. */
struct smalti_key_bands {
	int64_t blocks;
	struct smalti_tile **kv;
	int64_t *rows;
	const int *rank; /* a task takes blocks of one rank only; NULL: of any rank */
};

/* Returns a new tile [queries, heads·dim]: one block of queries attends to all keys, scores scaled. */
struct smalti_tile *smalti_attend(struct smalti_task_group *task_group, const struct smalti_heads *heads,
				  int64_t queries, struct smalti_tile *q,
				  const struct smalti_key_bands *keys);
