/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/pixart/weights.h"
#include "graphs/strategy/strategy.h"

/* A shard of the transformer: some heads of its attentions and some hidden columns of its MLPs, with the
 * rows and columns of the weights that these need. If a result is a sum over shards, the first one adds
 * the bias. */
struct smalti_dit_shard {
	int64_t first_head, heads; /* 0: the shard is empty */
	int64_t first_column, columns;
	struct smalti_dit_block *blocks; /* for images without cross.kv, which is computed whole */
};

/* Returns the shards of a strategy, which are made at its first use and kept with the model's weights. NULL
 * with an error if they cannot be made. A strategy that cuts no heads has one shard, the model
 * itself. */
struct smalti_dit_shards *smalti_dit_shards_of(struct smalti_dit *dit, const struct smalti_strategy *strategy,
					       struct smalti_error *error);
void smalti_dit_shards_free(struct smalti_dit *dit);

struct smalti_dit_shards {
	struct smalti_dit_shards *next; /* of the model's list */
	int count;
	struct smalti_dit_shard shard[];
};
