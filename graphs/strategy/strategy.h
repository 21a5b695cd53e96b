/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/grid.h"

/* How one image's denoising is spread over parts of a machine: which part computes what, and which version of
 * other tokens' keys and values attention reads. A part is a place (rt/places.h) with a share of the work.
 * The parts are numbered by four axes, outermost first: guidance branches, stages of layers, shards of heads,
 * and ranks of tokens. Each token has a home, which is a rank and a shard in it. The home computes everything
 * that concerns the token alone. */
enum { SMALTI_MAX_SHARDS = 64 };
enum smalti_axis { SMALTI_AXIS_BRANCH, SMALTI_AXIS_STAGE, SMALTI_AXIS_SHARD, SMALTI_AXIS_RANK, SMALTI_AXES };

/* Which keys and values of other ranks a token reads. */
enum smalti_exchange {
	SMALTI_EXCHANGE_GATHER,    /* this pass's, in the tokens' order */
	SMALTI_EXCHANGE_RING,      /* this pass's: the own rank's, then the next one's, each in a task */
	SMALTI_EXCHANGE_DISPLACED, /* the previous pass's, after the warm-up */
	SMALTI_EXCHANGE_MASKED,    /* none */
	/* None; each rank's tokens are an image of their own, with its own positions: whole rows, whole
	 * columns, or rows and columns by turns, pass by pass. @{ */
	SMALTI_EXCHANGE_NAIVE,
	SMALTI_EXCHANGE_NAIVE_COLUMNS,
	SMALTI_EXCHANGE_NAIVE_ALTERNATING
	/* @} */
};

struct smalti_strategy {
	int parts[SMALTI_AXES]; /* 1: the axis is not cut */
	/* A shard also holds and multiplies with its part of the weights, as in tensor parallelism; else
	 * shards compute attention only (Ulysses). */
	bool tensor;
	bool replicas; /* the branches are samples of a batch, as in training's data parallelism */
	enum smalti_exchange exchange;
	int64_t patches; /* that pass through the stages one after another, after the warm-up; a patch reads
			    the previous pass's keys and values of the patches behind it */
	int64_t warmup;  /* the first passes, which are synchronous; 1 or more */
	int count;       /* of places; 0: the policy places all tasks */
	int *place;      /* the parts take them in turn; owned */
	double *share;   /* of each place; owned */
	double *below[SMALTI_AXES]; /* of an axis: the sum of the shares of the parts before the first, the
				       second, …, and of all; owned */
	/* The strategy with other shares, for the passes from this one on; owned. @{ */
	int64_t first_pass;
	struct smalti_strategy *next; /* NULL: none */
				      /* @} */
};

/* Cuts nothing; the policy places all tasks. */
extern const struct smalti_strategy smalti_strategy_none;

/* Reads NAME[N] or hybrid:NAME[N].NAME[N]…, N parts; one name without N takes all parts that there are:
 *
 *   cfg, data                        branches
 *   pipeline, pipe                   stages
 *   ulysses, tensor                  shards
 *   patch, ring, displaced, masked, naive, naive-columns, naive-alternating   ranks
 *
 * `shares` (NULL: 1 for each device, or for the CPUs where there is none) are of the `places` places; those
 * with 0 are no parts. Parts in excess of the places share them in turn. -1 with SMALTI_EINVAL. */
int smalti_strategy_read(struct smalti_strategy *strategy, const char *text, const double *shares, int places,
			 struct smalti_error *error);
/* Reads a strategy with shares as A:B:...[,A:B:...@STEP]... . Those behind a comma hold from this step on
 * (the first of `steps` is 1) and cut the tokens again. It refuses a strategy in which they would cut
 * something else, or nothing. */
int smalti_strategy_read_cuts(struct smalti_strategy *strategy, const char *text, const char *shares,
			      int places, int64_t steps, struct smalti_error *error);
bool smalti_shares_cut_again(const char *text); /* NULL is fine */
/* Reads numbers with ':' between them, one for each place and not all 0. */
int smalti_shares_read(const char *text, int places, double *shares, struct smalti_error *error);
/* Fills `below` after the other members have been read. */
int smalti_strategy_sum_shares(struct smalti_strategy *strategy, struct smalti_error *error);
void smalti_strategy_free(struct smalti_strategy *strategy);

/* Tells whether results differ from those of one memory only by rounding. */
bool smalti_strategy_is_exact(const struct smalti_strategy *strategy);
/* Tells whether a pass reads keys and values of the one before. */
bool smalti_strategy_keeps(const struct smalti_strategy *strategy);
/* Tells whether ranks are images of their own. */
bool smalti_strategy_is_naive(const struct smalti_strategy *strategy);
/* Returns the strategy of the last passes. */
const struct smalti_strategy *smalti_strategy_last(const struct smalti_strategy *strategy);
/* Returns the strategy of a pass; `strategy` owns its arrays. */
struct smalti_strategy smalti_strategy_of_pass(const struct smalti_strategy *strategy, int64_t pass);
/* Returns a pass's kind, numbered as they first occur. Passes of a kind have the same strategy. */
int smalti_strategy_kind(const struct smalti_strategy *strategy, int64_t pass);

/* Returns the place of a part, or SMALTI_ANYWHERE. */
int smalti_strategy_place(const struct smalti_strategy *strategy, int branch, int stage, int shard, int rank);
/* Returns the branch of a place's first part; 0 for places without one. */
int smalti_strategy_branch(const struct smalti_strategy *strategy, int place);
/* Sums the shares of all parts of each of the `places` places. */
void smalti_strategy_shares(const struct smalti_strategy *strategy, double *shares, int places);
/* Returns where part `part` of an axis begins, of `count` things cut by the shares. It ends where the next
 * one begins, and may be empty. */
int64_t smalti_strategy_begin(const struct smalti_strategy *strategy, enum smalti_axis axis, int64_t count,
			      int part);
int smalti_strategy_stage(const struct smalti_strategy *strategy, int64_t layers, int64_t layer);

/* A band of an image's tokens. Their order is row by row; under a strategy of columns rank by rank, row by
 * row in each. An alternating strategy is cut as that of the pass. */
struct smalti_token_band {
	int64_t patch;
	int rank, shard;
};
struct smalti_tokens {
	const struct smalti_strategy *strategy;
	int64_t rows, columns; /* of patches in the image */
	struct smalti_partition partition;
	struct smalti_token_band *band;
};
/* Some columns of an image's patches. */
struct smalti_token_area {
	int64_t left, columns, first; /* first: its first token, in the whole partition */
};

/* Cuts tokens into bands of at most `band_tokens`, each in one patch, rank and shard; `columns` tokens are a
 * row of the image. The strategy outlives them. */
int smalti_tokens_cut(struct smalti_tokens *tokens, const struct smalti_strategy *strategy, int64_t count,
		      int64_t columns, int64_t band_tokens, struct smalti_error *error);
/* Returns a rank's first token, if there is one patch; behind the last rank, the number of tokens. */
int64_t smalti_tokens_begin(const struct smalti_tokens *tokens, int rank);
/* Returns how many columns of patches a rank's tokens have. */
int64_t smalti_tokens_columns(const struct smalti_tokens *tokens, int rank);
/* Returns the area of a band, whose tokens follow its first one row by row: the image, or a rank's
 * columns. */
struct smalti_token_area smalti_tokens_area(const struct smalti_tokens *tokens, int64_t band);
void smalti_tokens_free(struct smalti_tokens *tokens);
