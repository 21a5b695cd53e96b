/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "graphs/pixart/train.h"
#include "rt/task.h"

/* What the files of graphs/pixart/train*.c share: the model's layers by places in
 * the list of parameters, and a sample's pass through them. */

/* A weight [out, in] and its bias (-1: none). */
struct smalti_train_linear {
	int64_t weight, bias, in, out;
	bool exact; /* f32 whatever products are rounded to */
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
	struct smalti_tile **rounded;      /* of each parameter, within a step; NULL: it is
					      multiplied as it is */
};

/* An activation of known dtype: f32, or what products are rounded to. */
struct smalti_train_rows {
	struct smalti_tile *tile;
	int64_t rows;
	enum smalti_dtype dtype;
};

/* What an MLP's backward needs beside its input. */
struct smalti_mlp_kept {
	struct smalti_tile *x, *hidden; /* x: only where nobody else keeps it; hidden:
					   before the activation */
};

/* What a block keeps of each band. */
enum smalti_band_kept {
	/* Of each shard. */
	SMALTI_KEPT_Q,
	SMALTI_KEPT_K,
	SMALTI_KEPT_V,
	SMALTI_KEPT_ATTENDED, /* the heads' results, and the logarithms of their sums
			       */
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

/* What a block keeps at each part. */
struct smalti_part_kept {
	struct smalti_tile *modulation;        /* [6, width]: the same everywhere */
	struct smalti_tile *cross_k, *cross_v; /* of the caption, in the shard's heads */
};

struct smalti_block_kept {
	struct smalti_tile **tiles; /* NULL where the block is recomputed */
	struct smalti_part_kept *part;
};

/* A part of a pass: a rank's shard. */
struct smalti_train_part {
	int64_t begin, end;        /* the bands that are at home here */
	int place;                 /* or SMALTI_ANYWHERE */
	struct smalti_tile *final; /* the last layer's shift and scale [2, width] */
	/* Of the backward: what its tokens and its weights give. */
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
	struct smalti_tile *turn;       /* written when a layer's turn comes; NULL: they do not take turns */
	int ranks, shards, parts;       /* parts: ranks · shards, the shards innermost */
	struct smalti_train_part *part, *here; /* here: where tasks run */
};

/* Has tasks run at a part, where a band is at home, or at a shard of its rank. @{ */
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
/* The shards add to a band one behind the other, so that it comes home with the last. */
static inline int smalti_train_turn(const struct smalti_dit_pass *pass, int64_t band, int i)
{
	return (pass->sample.tokens->band[band].shard + 1 + i) % pass->shards;
}
static inline const struct smalti_train_block *smalti_train_shard(const struct smalti_dit_pass *pass,
								  int64_t block, int shard)
{
	return &pass->train->blocks[block * pass->shards + shard];
}
/* Whether a band of the same part, or of the same rank, was before it: it adds to what that has written. @{
 */
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

/* What is inserted from here on begins behind all before, if the sample is bounded. Else tasks that need
 * little run far ahead: blocks are computed again before anybody wants them, and gradients of weights wait
 * with all that they read. */
void smalti_train_take_turn(struct smalti_dit_pass *pass);

/* A new f32 tile [rows, columns]. */
struct smalti_tile *smalti_train_tile(const struct smalti_dit_pass *pass, int64_t rows, int64_t columns);
struct smalti_tile *smalti_train_cleared(const struct smalti_dit_pass *pass, int64_t rows, int64_t columns);
/* y = x, or y += x, of `count` floats. */
void smalti_train_add(const struct smalti_dit_pass *pass, int64_t count, struct smalti_tile *x, bool add,
		      struct smalti_tile *y);
/* An f32 tile for each band. */
struct smalti_grid smalti_train_grid(const struct smalti_dit_pass *pass, int64_t columns);
struct smalti_tile *smalti_train_parameter(const struct smalti_dit_pass *pass, int64_t index);

/* dit_train_linear.c */
/* A new tile x·Wᵀ + b in `result`. */
struct smalti_tile *smalti_train_linear(const struct smalti_dit_pass *pass,
					const struct smalti_train_linear *linear, struct smalti_train_rows x,
					enum smalti_dtype result);
/* Adds x·Wᵀ + b to `sum`, f32, or makes it where it is NULL. */
struct smalti_tile *smalti_train_linear_sum(const struct smalti_dit_pass *pass,
					    const struct smalti_train_linear *linear,
					    struct smalti_train_rows x, struct smalti_tile *sum);
/* Weights' gradients from the result's; they are added to with `add`, or when
 * the pass's are. */
void smalti_train_linear_weight(const struct smalti_dit_pass *pass, const struct smalti_train_linear *linear,
				struct smalti_tile *gy, struct smalti_train_rows x, bool add);
/* The input's gradient into gx, or added to it. */
void smalti_train_linear_input(const struct smalti_dit_pass *pass, const struct smalti_train_linear *linear,
			       struct smalti_tile *gy, int64_t rows, bool add, struct smalti_tile *gx);
/* A new tile f32, or `sum`, which is added to; *hidden: another one, what is to be kept. */
struct smalti_tile *smalti_train_mlp(const struct smalti_dit_pass *pass, const struct smalti_train_mlp *mlp,
				     struct smalti_train_rows x, struct smalti_tile **hidden,
				     struct smalti_tile *sum);
/* gx: NULL, or a tile that is written, or with `add_input` added to. */
void smalti_train_mlp_backward(const struct smalti_dit_pass *pass, const struct smalti_train_mlp *mlp,
			       struct smalti_train_rows x, struct smalti_tile *hidden, struct smalti_tile *gy,
			       bool add, bool add_input, struct smalti_tile *gx);

/* dit_train_conditions.c: e, g and c of a pass, and their gradients' way to the
 * parameters. */
void smalti_train_conditions(struct smalti_dit_pass *pass);
void smalti_train_conditions_backward(struct smalti_dit_pass *pass);
void smalti_train_conditions_release(struct smalti_dit_pass *pass);
/* A new tile [rows, width]: a table of the parameters plus what repeats every
 * `period` rows. */
struct smalti_tile *smalti_train_modulation(const struct smalti_dit_pass *pass, int64_t table, int64_t rows,
					    struct smalti_tile *embedding, int64_t period);

/* dit_train_ends.c */
/* Values of a patch. */
static inline int64_t smalti_train_patch_columns(const struct smalti_dit_pass *pass, int64_t channels)
{
	return channels * pass->train->config.patch_size * pass->train->config.patch_size;
}
/* The tokens in front of the first block: patches through their linear layer, with their positions. */
void smalti_train_embed(struct smalti_dit_pass *pass);
/* gx: NULL, or the gradient of the planes. */
void smalti_train_embed_backward(struct smalti_dit_pass *pass, const struct smalti_grid *gz,
				 struct smalti_tile *gx);
/* A new tile where the first rank is: the bands' results as planes. */
struct smalti_tile *smalti_train_project(struct smalti_dit_pass *pass);
/* The gradient behind the last block into gz, and e's by the last layer's modulation. */
void smalti_train_project_backward(struct smalti_dit_pass *pass, struct smalti_tile *gout,
				   const struct smalti_grid *gz);

/* dit_train_block.c: z of the block to that behind it, which is left out where
 * `next` is NULL. */
void smalti_train_block(struct smalti_dit_pass *pass, int64_t block, const struct smalti_grid *next);
void smalti_train_block_release(const struct smalti_dit_pass *pass, int64_t block);
/* dit_train_backward.c: gz is the gradient behind the block, and becomes that
 * in front of it. */
void smalti_train_block_backward(struct smalti_dit_pass *pass, int64_t block, const struct smalti_grid *gz);

static inline int64_t smalti_train_rows(const struct smalti_dit_pass *pass, int64_t band)
{
	return smalti_partition_rows(smalti_train_bands(pass), band);
}

/* What a block keeps at a part, and of a band: of one of its shards, or with 0 of the band. @{ */
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

/* The band whose keys the queries of the rank where tasks run see first: a
 * ring's is its own. */
static inline int64_t smalti_train_first_keys(const struct smalti_dit_pass *pass)
{
	return pass->sample.tokens->strategy->exchange == SMALTI_EXCHANGE_RING ? pass->here->begin : 0;
}

/* From here to smalti_fuse_end() are operations on some rows of the stream that
 * may become one task. */
void smalti_train_begin_task(const struct smalti_dit_pass *pass, enum smalti_grain grain, int64_t rows,
			     const char *name);

/* LN-modulated rows for a product: 3.5. */
struct smalti_train_rows smalti_train_normalized(const struct smalti_dit_pass *pass, int64_t rows,
						 struct smalti_tile *x, struct smalti_tile *modulation,
						 int64_t shift_row, double epsilon);
