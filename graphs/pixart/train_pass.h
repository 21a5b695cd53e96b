/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/parameters.h"
#include "graphs/pixart/block.h"
#include "graphs/pixart/train.h"

/* What the files graphs/pixart/train*.c share: a model whose weights are parameters, and a sample's pass
 * through it. */
struct smalti_dit_train {
	const struct smalti_parameters *parameters;
	struct smalti_dit *dit;
	const struct smalti_dit_shards *shards;
};

struct smalti_dit_pass {
	struct smalti_dit_train *train;
	struct smalti_dit_sample sample;
	struct smalti_tape tape;
	struct smalti_conditions *conditions;
	struct smalti_dit_forward forward;
	int *place;                   /* of each part: a rank's shards follow each other */
	struct smalti_value *patches; /* of each band: [*, in_channels·patch²] */
	struct smalti_value *z; /* of each block and band the stream in front of it; then behind the last */
	struct smalti_value *v; /* of each band: [*, patch²·out_channels] */
	struct smalti_tape_mark *mark; /* where each block begins, then the last layer */
	struct smalti_tile *turn;      /* written when a layer's turn comes; NULL: layers take no turns */
};

static inline struct smalti_value *smalti_dit_stream(const struct smalti_dit_pass *pass, int64_t block)
{
	return pass->z + block * pass->sample.tokens->partition.bands;
}

/* Inserts a sample's forward; `keeps_all`: nothing is released before the pass. */
struct smalti_dit_pass *smalti_dit_pass_forward(struct smalti_dit_train *train,
						struct smalti_task_group *task_group,
						const struct smalti_dit_sample *sample, bool keeps_all,
						struct smalti_tile **out);
/* Makes the tokens in front of the first block: patches through their linear layer, with their positions. */
void smalti_dit_embed_planes(struct smalti_dit_pass *pass);
/* Writes the gradient of the planes, from that of the patches. */
void smalti_dit_planes_gradient(struct smalti_dit_pass *pass, struct smalti_tile *gx);
/* Returns a new tile at the first part: the last layer's results as planes. */
struct smalti_tile *smalti_dit_project_planes(struct smalti_dit_pass *pass);
/* Gives these results the gradients that planes have. */
void smalti_dit_begin_gradients(struct smalti_dit_pass *pass, struct smalti_tile *gout);
