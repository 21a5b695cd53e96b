/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "graphs/pixart/train.h"
#include "rt/task.h"

/* The files graphs/pixart/train*.c share the model's layers, as indices in the list of parameters, and a
 * sample's pass through them. */

/* A weight [out, in] and its bias (-1: none). */
struct smalti_train_linear {
	int64_t weight, bias, in, out;
	bool exact; /* f32, even if products are rounded */
};

/* Linear, GELU or SiLU, linear. */
struct smalti_train_mlp {
	struct smalti_train_linear first, second;
	bool gelu;
};

struct smalti_train_attention {
	struct smalti_train_linear q, k, v, out;
	enum smalti_dtype dtype; /* of q, k, v and the result */
};

/* A shard of a block; where it has no heads or no columns, those layers have no outputs. */
struct smalti_train_block {
	struct smalti_train_attention self, cross;
	struct smalti_train_mlp mlp;
	int64_t table, heads;
};

struct smalti_dit_train {
	struct smalti_transformer_config config;
	const struct smalti_parameters *parameters;
	enum smalti_dtype compute;
	struct smalti_train_linear patch, adaln, out;
	struct smalti_train_mlp timestep, resolution, aspect_ratio, caption;
	int64_t final_table;
	struct smalti_train_block *blocks; /* of each block, its shards */
	struct smalti_tile **rounded; /* of each parameter, within a step; NULL: products read it unrounded */
};

/* An activation of known dtype: f32, or what products are rounded to. */
struct smalti_train_rows {
	struct smalti_tile *tile;
	int64_t rows;
	enum smalti_dtype dtype;
};

/* The tiles that an MLP's backward needs besides its input. */
struct smalti_mlp_kept {
	struct smalti_tile *x,
	    *hidden; /* x: only if it is kept nowhere else; hidden: before the activation */
};

/* The tiles that a block keeps of each band. */
enum smalti_band_kept {
	/* Of each shard. */
	SMALTI_KEPT_Q,
	SMALTI_KEPT_K,
	SMALTI_KEPT_V,
	SMALTI_KEPT_ATTENDED, /* the heads' results, and the logarithms of their sums */
	SMALTI_KEPT_LSE,
	SMALTI_KEPT_CROSS_Q,
	SMALTI_KEPT_CROSS_ATTENDED,
	SMALTI_KEPT_CROSS_LSE,
	SMALTI_KEPT_HIDDEN, /* of the MLP, before GELU */
	/* Of the band. */
	SMALTI_KEPT_ATTENTION, /* what is gated and added */
	SMALTI_KEPT_AFTER_ATTENTION,
	SMALTI_KEPT_AFTER_CROSS,
	SMALTI_KEPT_MLP, /* what is gated and added */
	SMALTI_KEPT_TILES
};

/* The tiles that a block keeps at each part. */
struct smalti_part_kept {
	struct smalti_tile *modulation;        /* [6, width], equal at all parts */
	struct smalti_tile *cross_k, *cross_v; /* of the caption, in the shard's heads */
};

struct smalti_block_kept {
	struct smalti_tile **tiles; /* NULL if the block is recomputed */
	struct smalti_part_kept *part;
};

/* A part of a pass: a rank's shard. */
struct smalti_train_part {
	int64_t begin, end;        /* the bands whose home is here */
	int place;                 /* or SMALTI_ANYWHERE */
	struct smalti_tile *final; /* the last layer's shift and scale [2, width] */
	/* Of the backward: the gradients from its tokens and its weights. */
	struct smalti_tile *const *gradients;
	struct smalti_tile *gc, *gg, *ge; /* gradients of c, g and e */
};

struct smalti_dit_pass {
	struct smalti_dit_train *train;
	struct smalti_task_group *task_group;
	struct smalti_dit_sample sample;
	/* Of the conditions: e [1, width] and g [6, width] (docs/reference.md 3.3).
	 */
	struct smalti_mlp_kept timestep, resolution, aspect_ratio, caption;
	struct smalti_tile *e, *activated, *g;
	struct smalti_tile *c;          /* the caption in the model's width */
	struct smalti_grid patches;     /* [*, in_channels·patch²] */
	struct smalti_grid *z;          /* the stream in front of each block, and behind the last */
	struct smalti_block_kept *kept; /* of each block */
	bool add;                       /* of the backward: gradients are added to */
	struct smalti_tile *turn;       /* written when a layer's turn comes; NULL: layers take no turns */
	int ranks, shards, parts;       /* parts: ranks · shards, the shards innermost */
	struct smalti_train_part *part, *here; /* here: where tasks run */
};

/* Places the following tasks at a part, at a band's home, or at a shard of the band's rank. @{ */
void smalti_train_go(struct smalti_dit_pass *pass, int part);
void smalti_train_go_home(struct smalti_dit_pass *pass, int64_t band);
void smalti_train_go_to_shard(struct smalti_dit_pass *pass, int64_t band, int shard);
/* @} */
static inline int smalti_train_part_of(const struct smalti_dit_pass *pass, int64_t band, int shard)
{
	return pass->sample.tokens->band[band].rank * pass->shards + shard;
}
static inline int smalti_train_home(const struct smalti_dit_pass *pass, int64_t band)
{
	return smalti_train_part_of(pass, band, pass->sample.tokens->band[band].shard);
}
/* Returns the shard number i that adds to a band. The band's own is the last, where the sum is needed. */
static inline int smalti_train_turn(const struct smalti_dit_pass *pass, int64_t band, int i)
{
	return (pass->sample.tokens->band[band].shard + 1 + i) % pass->shards;
}
static inline const struct smalti_train_block *smalti_train_shard(const struct smalti_dit_pass *pass,
								  int64_t block, int shard)
{
	return &pass->train->blocks[block * pass->shards + shard];
}
/* Tells whether a band adds to tiles that an earlier band of its part, or of its rank, has written. @{ */
static inline bool smalti_train_adds(const struct smalti_dit_pass *pass, int64_t band)
{
	return band > pass->part[smalti_train_home(pass, band)].begin;
}
static inline bool smalti_train_shard_adds(const struct smalti_dit_pass *pass, int64_t band)
{
	return band > pass->part[smalti_train_part_of(pass, band, 0)].begin;
}
/* @} */
static inline const struct smalti_partition *smalti_train_bands(const struct smalti_dit_pass *pass)
{
	return &pass->sample.tokens->partition;
}

/* Makes later tasks begin behind all earlier ones, if the sample is bounded. Otherwise tasks that need little
 * run far ahead: blocks are recomputed before they are read, and gradients of weights wait with all that they
 * read. */
void smalti_train_take_turn(struct smalti_dit_pass *pass);

/* Returns a new f32 tile [rows, columns]; the second one is cleared. */
struct smalti_tile *smalti_train_tile(const struct smalti_dit_pass *pass, int64_t rows, int64_t columns);
struct smalti_tile *smalti_train_cleared(const struct smalti_dit_pass *pass, int64_t rows, int64_t columns);
/* Inserts y = x, or with `add` y += x, of `count` floats. */
void smalti_train_add(const struct smalti_dit_pass *pass, int64_t count, struct smalti_tile *x, bool add,
		      struct smalti_tile *y);
/* Returns an f32 tile for each band. */
struct smalti_grid smalti_train_grid(const struct smalti_dit_pass *pass, int64_t columns);
struct smalti_tile *smalti_train_parameter(const struct smalti_dit_pass *pass, int64_t index);

/* Returns a new tile x·Wᵀ + b in `result`. */
struct smalti_tile *smalti_train_linear(const struct smalti_dit_pass *pass,
					const struct smalti_train_linear *linear, struct smalti_train_rows x,
					enum smalti_dtype result);
/* Adds x·Wᵀ + b to `sum`, f32; makes a new tile if `sum` is NULL. */
struct smalti_tile *smalti_train_linear_sum(const struct smalti_dit_pass *pass,
					    const struct smalti_train_linear *linear,
					    struct smalti_train_rows x, struct smalti_tile *sum);
/* Computes the weights' gradients from the result's. They are added to with `add`, or if the pass adds. */
void smalti_train_linear_weight(const struct smalti_dit_pass *pass, const struct smalti_train_linear *linear,
				struct smalti_tile *gy, struct smalti_train_rows x, bool add);
/* Computes the input's gradient into gx, or adds it there. */
void smalti_train_linear_input(const struct smalti_dit_pass *pass, const struct smalti_train_linear *linear,
			       struct smalti_tile *gy, int64_t rows, bool add, struct smalti_tile *gx);
/* Returns a new tile f32, or `sum`, to which it adds. *hidden receives a new tile that has to be kept. */
struct smalti_tile *smalti_train_mlp(const struct smalti_dit_pass *pass, const struct smalti_train_mlp *mlp,
				     struct smalti_train_rows x, struct smalti_tile **hidden,
				     struct smalti_tile *sum);
/* Inserts an MLP's backward. gx: NULL, or a tile that is written, or with `add_input` added to. */
void smalti_train_mlp_backward(const struct smalti_dit_pass *pass, const struct smalti_train_mlp *mlp,
			       struct smalti_train_rows x, struct smalti_tile *hidden, struct smalti_tile *gy,
			       bool add, bool add_input, struct smalti_tile *gx);

/* Computes e, g and c of a pass, and the gradients of their parameters. */
void smalti_train_conditions(struct smalti_dit_pass *pass);
void smalti_train_conditions_backward(struct smalti_dit_pass *pass);
void smalti_train_conditions_release(struct smalti_dit_pass *pass);
/* Returns a new tile [rows, width]: a table of the parameters plus the embedding, repeated every `period`
 * rows. */
struct smalti_tile *smalti_train_modulation(const struct smalti_dit_pass *pass, int64_t table, int64_t rows,
					    struct smalti_tile *embedding, int64_t period);

static inline int64_t smalti_train_patch_columns(const struct smalti_dit_pass *pass, int64_t channels)
{
	return channels * pass->train->config.patch_size * pass->train->config.patch_size;
}
/* Makes the tokens in front of the first block: patches through their linear layer, with their positions. */
void smalti_train_embed(struct smalti_dit_pass *pass);
/* Inserts the backward of that. gx: NULL, or it receives the gradient of the planes. */
void smalti_train_embed_backward(struct smalti_dit_pass *pass, const struct smalti_grid *gz,
				 struct smalti_tile *gx);
/* Returns a new tile at the first rank: the bands' results as planes. */
struct smalti_tile *smalti_train_project(struct smalti_dit_pass *pass);
/* Computes the gradient behind the last block into gz, and each part's of e through the last layer's
 * modulation. */
void smalti_train_project_backward(struct smalti_dit_pass *pass, struct smalti_tile *gout,
				   const struct smalti_grid *gz);

/* Inserts a block from its z to the next block's z, which is left out if `next` is NULL. */
void smalti_train_block(struct smalti_dit_pass *pass, int64_t block, const struct smalti_grid *next);
void smalti_train_block_release(const struct smalti_dit_pass *pass, int64_t block);
/* Inserts a block's backward. gz is the gradient behind the block, and becomes the one in front of it. */
void smalti_train_block_backward(struct smalti_dit_pass *pass, int64_t block, const struct smalti_grid *gz);

static inline int64_t smalti_train_rows(const struct smalti_dit_pass *pass, int64_t band)
{
	return smalti_partition_rows(smalti_train_bands(pass), band);
}

/* Returns what a block keeps at a part, and of a band: of a shard, or with 0 of the band itself. @{ */
static inline const struct smalti_part_kept *smalti_train_kept_at(const struct smalti_dit_pass *pass,
								  const struct smalti_block_kept *kept)
{
	return &kept->part[pass->here - pass->part];
}
static inline struct smalti_tile **smalti_train_kept(const struct smalti_dit_pass *pass,
						     const struct smalti_block_kept *kept,
						     enum smalti_band_kept which, int64_t band, int shard)
{
	return &kept->tiles[((int64_t)which * smalti_train_bands(pass)->bands + band) * pass->shards + shard];
}
/* @} */

/* Returns the band whose keys the queries read first, at the rank where tasks run. In a ring it is the rank's
 * own. */
static inline int64_t smalti_train_first_keys(const struct smalti_dit_pass *pass)
{
	return pass->sample.tokens->strategy->exchange == SMALTI_EXCHANGE_RING ? pass->here->begin : 0;
}

/* Begins operations on some rows of the stream, up to smalti_fuse_end(), that may become one task. */
void smalti_train_begin_task(const struct smalti_dit_pass *pass, enum smalti_grain grain, int64_t rows,
			     const char *name);

/* Returns LN-modulated rows for a product (3.5). */
struct smalti_train_rows smalti_train_normalized(const struct smalti_dit_pass *pass, int64_t rows,
						 struct smalti_tile *x, struct smalti_tile *modulation,
						 int64_t shift_row, double epsilon);
