/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/pixart/dit.h"

struct smalti_dit_attention {
	struct smalti_linear q, kv, out;
};

struct smalti_dit_block {
	struct smalti_dit_attention self, cross;
	struct smalti_linear ff_in, ff_out;
};

/* Linear, SiLU, linear. */
struct smalti_dit_embedder {
	struct smalti_linear linear_1, linear_2;
};

struct smalti_dit {
	struct smalti_denoiser denoiser;
	struct smalti_transformer_config config;
	enum smalti_dtype compute;
	struct smalti_linear patch;
	struct smalti_dit_embedder timestep, resolution, aspect_ratio; /* the last two if micro-conditions */
	struct smalti_linear adaln;
	struct smalti_dit_embedder caption; /* empty: captions have the model's width */
	struct smalti_weight
	    *block_tables; /* [layers·6, width]: shift, scale, gate of attention, then of MLP */
	struct smalti_weight *final_table; /* [2, width]: shift, scale */
	struct smalti_dit_block *blocks;
	struct smalti_linear out;
	struct smalti_dit_shards *shards; /* that strategies needed */
};

/* Fills all but denoiser, config, compute and shards. */
int smalti_dit_load(struct smalti_dit *dit, const struct smalti_checkpoint *checkpoint,
		    struct smalti_error *error);
