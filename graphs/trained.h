/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/parameters.h"
#include "graphs/strategy/strategy.h"

/* A denoiser in training: a forward of one sample on a tape (graphs/layers/tape.h), and its backward. Every
 * sum is taken in the order of bands, parts and layers, so bits depend only on the cut of the tokens.
 *
 * A strategy (graphs/strategy/strategy.h) cuts the samples of a step by branches, which are replicas
 * here, tokens by ranks, and heads and the MLP's columns, with their weights (graphs/parameters.h), by
 * shards. Each replica computes whole samples; its parts are the ranks, or the shards. Each part has its
 * tokens, and its own sums of the gradients of the weights that it computes with. */
struct smalti_trained;
struct smalti_trained_functions; /* of an architecture: graphs/trained_pass.h */

/* Returns 0 if training supports a strategy, or -1 with SMALTI_EUNSUPPORTED. */
int smalti_trained_check(const struct smalti_strategy *strategy, struct smalti_error *error);

/* Makes a denoiser that trains parameters, which outlive it. Products of tokens round operands to
 * `compute`. What depends only on the timestep stays f32; with f16 self-attention, too. */
struct smalti_trained *smalti_trained_new(const struct smalti_transformer_config *config,
					  const struct smalti_parameters *parameters,
					  enum smalti_dtype compute, struct smalti_error *error);
void smalti_trained_free(struct smalti_trained *trained); /* NULL is allowed */
/* Stores what an adapter leaves as it is in 16 bits where products round it, before it has values. */
void smalti_trained_store_base(struct smalti_trained *trained, struct smalti_task_group *task_group);

/* Begins and ends the samples of a step, between two changes of the parameters, whose copies live that long
 * (graphs/weights.h). */
void smalti_trained_begin_step(struct smalti_trained *trained, struct smalti_task_group *task_group);
void smalti_trained_end_step(struct smalti_trained *trained);

/* A sample. All but its tiles is copied; the caller releases these after inserting the backward. */
struct smalti_trained_sample {
	struct smalti_tile *x;              /* f32 [in_channels, height, width] */
	struct smalti_tile *gx;             /* receives the gradient of x; NULL: nobody wants it */
	int64_t height, width;              /* multiples of the patch size */
	const struct smalti_tokens *tokens; /* its patches in bands; outlives the backward's insertion */
	int replica;
	struct smalti_tile *text; /* f32 [text_tokens, caption_channels] */
	int64_t text_tokens;
	int64_t timestep;
	float sides[2], ratio; /* micro-conditions: the height and width of the
				  picture, the ratio of its bin */
	int64_t
	    recomputed; /* the first so many blocks keep only their input: the backward computes them again */
	bool bounded;   /* at each part, each layer begins behind the one before, so that rt/counting.h counts
			   all that is held */
};

/* A forward whose backward has not been inserted yet. */
struct smalti_trained_pass;

/* Inserts a sample's forward. *out: a new tile f32 [out_channels, height, width]. NULL, with the task group
 * broken, without memory for its lists. */
struct smalti_trained_pass *smalti_trained_forward(struct smalti_trained *trained,
						   struct smalti_task_group *task_group,
						   const struct smalti_trained_sample *sample,
						   struct smalti_tile **out);

/* Inserts the backward from the output's gradient. gradients[part][i], the part's gradient of parameter i, is
 * written, or with `add` added to. Ends the pass. */
void smalti_trained_backward(struct smalti_trained_pass *pass, struct smalti_tile *gout,
			     struct smalti_tile *const *const *gradients, bool add);
/* Returns a replica's number of parts, and whether a part has a gradient of parameter `index`: shards of
 * their own weights, and only the first part of parameters that depend on no token. */
static inline int smalti_trained_parts(const struct smalti_strategy *strategy)
{
	return strategy->parts[SMALTI_AXIS_RANK] * strategy->parts[SMALTI_AXIS_SHARD];
}
bool smalti_trained_gives(const struct smalti_trained *trained, int part, int64_t index);
/* Ends a pass without a backward. NULL is allowed. */
void smalti_trained_drop(struct smalti_trained_pass *pass);

/* Returns the most bytes that each worker keeps for its kernels. */
int64_t smalti_trained_scratch(const struct smalti_trained *trained,
			       const struct smalti_trained_sample *sample);

/* A layer's output, or an input of a sample, in the order of a forward. */
struct smalti_trained_probe {
	char name[64];
	double square_sum; /* not finite if any of its values is not */
};
struct smalti_trained_probes {
	struct smalti_trained_probe *list; /* from malloc() */
	int64_t count;
};

/* Inserts a forward of a sample, between two steps. The sums are set when the task group has ended. */
int smalti_trained_probe_all(struct smalti_trained *trained, struct smalti_task_group *task_group,
			     const struct smalti_trained_sample *sample, struct smalti_trained_probes *probes,
			     struct smalti_error *error);
