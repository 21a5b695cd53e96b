/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "rt/grid.h"

struct smalti_heads {
	int64_t count, dim;
	enum smalti_dtype dtype; /* of q, kv and the result */
};

/* A new tile [queries, heads·dim]: one block of queries against all bands of keys and values, in the
 * order of the bands; scores scaled by dim^-1/2. kv tiles [keys, 2·heads·dim]. */
struct smalti_tile *smalti_attend(struct smalti_task_group *task_group, const struct smalti_heads *heads,
				  int64_t queries, struct smalti_tile *q,
				  const struct smalti_partition *partition, int64_t rows_per,
				  struct smalti_tile *const *kv);
