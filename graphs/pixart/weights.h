/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/pixart/dit.h"

struct smalti_dit_attention {
	struct smalti_linear q, kv, out;
};

struct smalti_dit_block {
	struct smalti_dit_attention self, cross;
	struct smalti_linear ff_in, ff_out;
	struct smalti_weight *table; /* of a model in training: its rows of block_tables */
};

/* Linear, SiLU, linear. */
struct smalti_dit_embedder {
	struct smalti_linear linear_1, linear_2;
};

struct smalti_dit {
	struct smalti_denoiser denoiser;
	struct smalti_transformer_config config;
	enum smalti_dtype compute, attention; /* of products; of self-attention's q, k, v and result */
	struct smalti_linear patch;
	struct smalti_dit_embedder timestep, resolution, aspect_ratio; /* the last two if micro-conditions */
	struct smalti_linear adaln;
	struct smalti_dit_embedder caption; /* empty: captions have the model's width */
	struct smalti_weight *block_tables; /* [layers·6, width]: shift, scale, gate of attention, then of
					       MLP; NULL in training */
	struct smalti_weight *final_table;  /* [2, width]: shift, scale */
	struct smalti_dit_block *blocks;
	struct smalti_linear out;
	struct smalti_dit_shards *shards;   /* that strategies needed */
	struct smalti_dit_adapted *adapted; /* of a model with unmerged adapters; else NULL */
};

/* What a model with unmerged adapters has beside the weights of the model that it is made from, or of its own
 * in training. */
struct smalti_dit_adapted {
	struct smalti_checkpoint checkpoint; /* that model's, with the adapters */
	struct smalti_weights *weights;      /* of the adapters; NULL in training */
	struct smalti_low_rank_pair *pairs;
	int64_t count;
};

/* adapted.c: see struct smalti_denoiser_functions. @{ */
struct smalti_denoiser *smalti_dit_adapt(const struct smalti_denoiser *denoiser,
					 struct smalti_task_group *task_group,
					 const struct smalti_adapter_set *adapters,
					 struct smalti_error *error);
void smalti_dit_adapted_free(struct smalti_dit_adapted *adapted); /* NULL is allowed */
/* Adds the adapters of a model in training to its layers, if its parameters are adapters'. */
int smalti_dit_train_adapters(struct smalti_dit *dit, struct smalti_error *error);
/* @} */
/* Loads the embedding of patches. */
void smalti_dit_load_patch(struct smalti_dit *dit, struct smalti_weights *weights);

/* Makes a model of the given weights, which it owns, even after an error. */
struct smalti_dit *smalti_dit_of(struct smalti_weights *weights,
				 const struct smalti_transformer_config *config, enum smalti_dtype compute,
				 struct smalti_error *error);
/* Fills all that is loaded. */
int smalti_dit_load(struct smalti_dit *dit, struct smalti_error *error);
