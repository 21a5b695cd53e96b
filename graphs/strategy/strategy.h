/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/grid.h"

/* How one image's denoising is spread over parts of a machine: which part computes what, and which version
 * of other tokens' keys and values attention reads. A part is a place (rt/places.h) with a share of the work.
 *
 * The parts are numbered by four axes, outermost first: guidance branches, stages of layers, shards of heads,
 * and ranks of tokens. Each token belongs to the rank and, within it, to the shard that is its home: there
 * all that concerns the token alone is computed. */
enum { SMALTI_MOST_SHARDS = 64 };
enum smalti_axis { SMALTI_AXIS_BRANCH, SMALTI_AXIS_STAGE, SMALTI_AXIS_SHARD, SMALTI_AXIS_RANK, SMALTI_AXES };

/* What a token reads of other ranks' keys and values. */
enum smalti_exchange {
	SMALTI_EXCHANGE_GATHER,    /* this pass's, in the tokens' order */
	SMALTI_EXCHANGE_RING,      /* the same, its own rank's first, then the next one's, each in a task */
	SMALTI_EXCHANGE_DISPLACED, /* after the warm-up, the previous pass's */
	SMALTI_EXCHANGE_MASKED,    /* nothing */
	/* Nothing; each rank's tokens are an image of their own, with its positions: whole rows, whole
	 * columns, or rows and columns in turns, pass by pass. @{ */
	SMALTI_EXCHANGE_NAIVE,
	SMALTI_EXCHANGE_NAIVE_COLUMNS,
	SMALTI_EXCHANGE_NAIVE_ALTERNATING
	/* @} */
};

struct smalti_strategy {
	int parts[SMALTI_AXES]; /* 1: the axis is not cut */
	/* Of a shard: its parts also hold and multiply with its part of the weights, as in tensor
	 * parallelism; else they compute its attention only (Ulysses). */
	bool tensor;
	bool replicas; /* the branches are samples of a batch, as in training's data parallelism */
	enum smalti_exchange exchange;
	int64_t patches; /* that pass through the stages one behind the other, after the warm-up; a patch
			    reads the previous pass's keys and values of those behind it */
	int64_t warmup;  /* passes at first that are synchronous, 1 or more */
	int count;       /* of places; 0: the policy places all */
	int *place;      /* of the parts in turn; owned */
	double *share;   /* of each; owned */
	double *below[SMALTI_AXES]; /* of an axis: the shares of all parts before the first, the second, …,
				       and of all; owned */
	/* The same strategy by other shares, for the passes from this one on; owned. @{ */
	int64_t first_pass;
	struct smalti_strategy *next; /* NULL: there is no other */
				      /* @} */
};

/* Nothing is cut, and the policy places all. */
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
/* The same with shares as A:B:...[,A:B:...@STEP]..., where those behind a comma hold from this step on (the
 * first one of `steps` is 1) and cut the tokens again. Refused is a strategy for which that would be more, or
 * nothing. */
int smalti_strategy_read_cuts(struct smalti_strategy *strategy, const char *text, const char *shares,
			      int places, int64_t steps, struct smalti_error *error);
bool smalti_shares_cut_again(const char *text); /* NULL is fine */
/* Numbers with ':' between them, one for each place and not all 0. */
int smalti_shares_read(const char *text, int places, double *shares, struct smalti_error *error);
/* Fills `below` when the rest has been read. */
int smalti_strategy_sum_shares(struct smalti_strategy *strategy, struct smalti_error *error);
void smalti_strategy_free(struct smalti_strategy *strategy);

/* Whether results differ from those of one memory by more than rounding. */
bool smalti_strategy_is_exact(const struct smalti_strategy *strategy);
/* Whether keys and values of a pass are read by the next one. */
bool smalti_strategy_keeps(const struct smalti_strategy *strategy);
/* Whether ranks are images of their own. */
bool smalti_strategy_is_naive(const struct smalti_strategy *strategy);
/* By the shares of the last passes. */
const struct smalti_strategy *smalti_strategy_last(const struct smalti_strategy *strategy);
/* The strategy of a pass; `strategy` owns what it has. */
struct smalti_strategy smalti_strategy_of_pass(const struct smalti_strategy *strategy, int64_t pass);
/* Passes of a kind have the same strategy; kinds are counted as they first come. */
int smalti_strategy_kind(const struct smalti_strategy *strategy, int64_t pass);

/* The place of a part, or SMALTI_ANYWHERE. */
int smalti_strategy_place(const struct smalti_strategy *strategy, int branch, int stage, int shard, int rank);
/* Of each of the `places` places, the share of all its parts together. */
void smalti_strategy_shares(const struct smalti_strategy *strategy, double *shares, int places);
/* Where part `part` of an axis begins, of `count` things that are cut by the shares: the next one's beginning
 * is its end. A part may be empty. */
int64_t smalti_strategy_begin(const struct smalti_strategy *strategy, enum smalti_axis axis, int64_t count,
			      int part);
/* The stage of a layer. */
int smalti_strategy_stage(const struct smalti_strategy *strategy, int64_t layers, int64_t layer);

/* The tokens of an image under a strategy, in bands: row by row; under one of columns rank by rank, row by
 * row in each. One that alternates is cut as that of the pass. */
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
/* Of an image, some columns of patches. */
struct smalti_token_area {
	int64_t left, columns, first; /* begins with this token of the whole partition */
};

/* Bands of at most `band_tokens`, none in two patches, ranks or shards; `columns` tokens are a row of the
 * image. The strategy outlives them. */
int smalti_tokens_cut(struct smalti_tokens *tokens, const struct smalti_strategy *strategy, int64_t count,
		      int64_t columns, int64_t band_tokens, struct smalti_error *error);
/* The first token of a rank, where there is one patch; that of the rank behind the last one is their number.
 */
int64_t smalti_tokens_begin(const struct smalti_tokens *tokens, int rank);
/* How many columns of patches a rank's tokens have. */
int64_t smalti_tokens_columns(const struct smalti_tokens *tokens, int rank);
/* That of a band, whose tokens follow its first one row by row: the image, or a rank's columns. */
struct smalti_token_area smalti_tokens_area(const struct smalti_tokens *tokens, int64_t band);
void smalti_tokens_free(struct smalti_tokens *tokens);
