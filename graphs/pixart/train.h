/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/parameters.h"
#include "graphs/strategy/strategy.h"

/* The diffusion transformer as it is trained (docs/reference.md 3): a forward
 * of one sample that keeps what its backward needs. Every sum is taken in the
 * order of bands, ranks and blocks, so bits depend on the cut of the tokens
 * alone.
 *
 * A strategy (graphs/strategy/strategy.h) cuts the samples of a step by branches, which
 * are replicas here, tokens by ranks, and heads and the MLP's columns, with
 * their weights (graphs/parameters.h), by shards. Each replica computes whole
 * samples; its parts are the ranks, or the shards. Each part has its tokens, and
 * sums of its own of the gradients of the weights that it computes with. */
struct smalti_dit_train;

/* Whether samples can be trained on so: 0, or -1 with SMALTI_EUNSUPPORTED. */
int smalti_dit_train_check(const struct smalti_strategy *strategy, struct smalti_error *error);

/* Products of tokens have operands rounded to `compute`; what depends on the
 * timestep alone stays f32, and in f16 self-attention does, too. The parameters
 * outlive it. */
struct smalti_dit_train *smalti_dit_train_new(const struct smalti_transformer_config *config,
					      const struct smalti_parameters *parameters,
					      enum smalti_dtype compute, struct smalti_error *error);
void smalti_dit_train_free(struct smalti_dit_train *train); /* NULL is allowed */

/* Around the samples of a step, between two changes of the parameters: has
 * their rounded copies made, which live that long; but not where CPUs alone
 * multiply, in a dtype that their products round to as they read. */
void smalti_dit_train_begin_step(struct smalti_dit_train *train, struct smalti_task_group *task_group);
void smalti_dit_train_end_step(struct smalti_dit_train *train);

/* All but `x` and `text` is copied; these are released by the caller, behind
 * the backward's insertion. */
struct smalti_dit_sample {
	struct smalti_tile *x;              /* f32 [in_channels, height, width] */
	int64_t height, width;              /* multiples of the patch size */
	const struct smalti_tokens *tokens; /* its patches in bands; outlives the backward's insertion */
	int replica;
	struct smalti_tile *text; /* f32 [text_tokens, caption_channels] */
	int64_t text_tokens;
	int64_t timestep;
	float sides[2], ratio; /* micro-conditions: the height and width of the
				  picture, the ratio of its bin */
	int64_t recomputed;    /* the first so many blocks keep but their input: backward
				  computes them again */
	bool bounded;          /* each layer begins behind the one before, so that what
				  rt/counting.h counts is all that is held; for
				  one place, without a strategy */
};

/* A forward whose backward has not been inserted yet. */
struct smalti_dit_pass;

/* *out: a new tile f32 [out_channels, height, width]. NULL, with the task group
 * broken, when there is no memory for the lists of its tiles. */
struct smalti_dit_pass *smalti_dit_train_forward(struct smalti_dit_train *train,
						 struct smalti_task_group *task_group,
						 const struct smalti_dit_sample *sample,
						 struct smalti_tile **out);

/* From the output's gradient: gradients[part][i] is what the part gives of
 * parameter i's, written, or added to with `add`. gx: NULL, or a tile that
 * receives the gradient of x. Ends the pass. */
void smalti_dit_train_backward(struct smalti_dit_pass *pass, struct smalti_tile *gout,
			       struct smalti_tile *const *const *gradients, bool add, struct smalti_tile *gx);
/* How many parts a replica has, and whether a part has a gradient of parameter
 * `index`: shards have their own weights', and the first part alone has what
 * depends on no token. */
static inline int smalti_dit_train_parts(const struct smalti_strategy *strategy)
{
	return strategy->parts[SMALTI_AXIS_RANK] * strategy->parts[SMALTI_AXIS_SHARD];
}
bool smalti_dit_train_gives(const struct smalti_dit_train *train, int part, int64_t index);
/* Ends it without a backward. NULL is allowed. */
void smalti_dit_train_drop(struct smalti_dit_pass *pass);

/* Bytes of the copies of the parameters that a step has, whatever its samples. */
int64_t smalti_dit_train_rounded_bytes(const struct smalti_dit_train *train,
				       const struct smalti_session *session);

/* Bytes of what each worker keeps for its kernels, at most. */
int64_t smalti_dit_train_scratch(const struct smalti_dit_train *train,
				 const struct smalti_dit_sample *sample);

/* What a layer gives, or what a sample is made of, in the order in which a forward comes to it. */
struct smalti_dit_probe {
	char name[64];
	double square_sum; /* not finite when any of its values is not */
};
struct smalti_dit_probes {
	struct smalti_dit_probe *list; /* from malloc() */
	int64_t count;
};

/* A forward of a sample, between two steps; the sums are there when the task group has ended. */
int smalti_dit_train_probe(struct smalti_dit_train *train, struct smalti_task_group *task_group,
			   const struct smalti_dit_sample *sample, struct smalti_dit_probes *probes,
			   struct smalti_error *error);
