/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "graphs/t5/t5.h"
#include "rt/task.h"

/* The files of graphs/t5 share the encoder's weights, and an encoding that is under way. */

/* A matrix as the file has it: `count` things, which shards share, of `each` rows [in]. */
struct smalti_t5_matrix {
	struct smalti_weight *weight;
	struct smalti_weight *part[SMALTI_MANY]; /* of each shard, once a strategy has places */
	int64_t count, each, in;
	enum smalti_dtype dtype;
};

/* The matrices of a layer. */
enum smalti_t5_matrices {
	SMALTI_T5_Q,
	SMALTI_T5_K,
	SMALTI_T5_V,
	SMALTI_T5_O,
	SMALTI_T5_WI_0,
	SMALTI_T5_WI_1,
	SMALTI_T5_WO,
	SMALTI_T5_MATRICES
};

struct smalti_t5_block {
	struct smalti_weight *norm1, *norm2;
	struct smalti_t5_matrix matrix[SMALTI_T5_MATRICES];
};

struct smalti_t5 {
	struct smalti_text_encoder encoder; /* first: callers know only this */
	struct smalti_t5_config config;
	enum smalti_dtype compute;
	enum smalti_dtype wide; /* of a block's last product, whose operands may exceed f16 */
	int shards;
	bool streamed;
	bool cut;                             /* the matrices have parts */
	bool rounds_x;                        /* of the products that may: kernels/matmul_w8a8.h */
	struct smalti_task_group *task_group; /* of the weights */
	struct smalti_weight *relative_bias, *final_norm;
	struct smalti_t5_matrix embedding;
	struct smalti_t5_block *blocks;
	int64_t reach; /* of the positions in `bias`; grows */
	struct smalti_tile *bias;
};

/* Captions that are computed together: captions first … end − 1, `tokens` in all. */
struct smalti_t5_band {
	int64_t first, end, tokens, pairs;
	int64_t padding;                    /* of a single caption */
	struct smalti_tile *ids, *starts;   /* a single caption has no starts */
	struct smalti_tile *x[SMALTI_MANY]; /* the residual stream, in shards of columns */
};

/* One encoding under way. */
struct smalti_t5_encoding {
	struct smalti_t5 *t5;
	struct smalti_task_group *task_group;
	const struct smalti_token_ids *texts;
	int64_t count, bands;
	struct smalti_t5_band *band;
	double flops; /* of a band in a layer */
	bool placed;  /* shards have places, and their own parts of the weights */
	/* The place of each shard, or SMALTI_ANYWHERE; what is not cut is computed at the first one's. */
	int place[SMALTI_MANY];
};

/* Returns where shard `shard` of `count` things begins. */
static inline int64_t smalti_t5_shard_begin(const struct smalti_t5 *t5, int64_t count, int shard)
{
	return count * shard / t5->shards;
}

static inline int64_t smalti_t5_shard_size(const struct smalti_t5 *t5, int64_t count, int shard)
{
	return smalti_t5_shard_begin(t5, count, shard + 1) - smalti_t5_shard_begin(t5, count, shard);
}

static inline void smalti_t5_go_to(const struct smalti_t5_encoding *e, int shard)
{
	smalti_task_group_place(e->task_group, e->place[shard]);
}

/* Returns a new tile of a band's tokens. */
static inline struct smalti_tile *smalti_t5_new_shard(const struct smalti_t5_encoding *e,
						      const struct smalti_t5_band *band, int64_t columns,
						      enum smalti_dtype dtype)
{
	return smalti_tile_new(e->task_group, band->tokens, columns * smalti_dtype_bytes(dtype));
}

/* Loads the weights, which keep an error. */
void smalti_t5_load(struct smalti_t5 *t5);
/* Makes each shard's rows of the layers' matrices, once for all encodings. */
int smalti_t5_cut_weights(struct smalti_t5 *t5, struct smalti_error *error);

/* Cuts the captions into bands, and uploads their tokens. */
int smalti_t5_make_bands(struct smalti_t5_encoding *e, struct smalti_error *error);
/* Makes the biases of the positions in the captions. */
void smalti_t5_reach(const struct smalti_t5_encoding *e);
/* Makes the residual stream that the layers begin with. */
void smalti_t5_embed(const struct smalti_t5_encoding *e);

void smalti_t5_run_layers(const struct smalti_t5_encoding *e);
/* Applies the final norm, which makes the hidden states of each caption. Releases the bands. */
void smalti_t5_finish(const struct smalti_t5_encoding *e, struct smalti_tile **hidden);
