/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"

/* The keys and values of some tokens. */
struct smalti_keys {
	int64_t count;
	const void *k, *v;
};

/* Attention of a block of queries, streamed over blocks of keys with an online softmax: the scores are
 * never whole in memory. A call takes some blocks of keys. The caller's order of the blocks fixes the
 * arithmetic, however calls share them, so the bits do not depend on the schedule.
 *
 * Head h is columns h·head_dim … of each token's row. Softmax and sums in f32. An infinite query or key,
 * as f16 makes of numbers beyond 65504, gives NaN: it must not count as a key without weight.
 */
struct smalti_attention {
	int64_t queries; /* tokens */
	int64_t blocks;  /* of keys, of this call */
	int64_t heads, head_dim;
	int64_t q_stride, k_stride, v_stride; /* elements from a token to the next */
	enum smalti_dtype dtype;              /* of q, k, v and y */
	float scale;                          /* of the scores, before the bias */
	bool first, last;                     /* this call has the first, the last block */
	/* NULL, or f32 [heads, bias_length]: bias[h][bias_origin + j − i] is added to head h's score of query
	 * i and key j, counted over the blocks of this call (a relative position bias, docs/reference.md
	 * 2.2). */
	const float *bias;
	int64_t bias_length, bias_origin;
	/* NULL, or f32 [heads, queries], written when last: for each query the logarithm to base 2 of the sum
	 * of 2^score over all keys, with scores in units of ln 2 (kernels/backward.h). */
	float *lse;
};

/* Returns the floats of the running state of a block of queries, f32 [heads, 2 + head_dim, queries], equal
 * for all instruction sets and kinds of devices. For each query, with scores in units of ln 2: row 0 has the
 * origin m of its exponents (-inf: no key yet had any weight; else no score is larger than m + 16), row 1 the
 * sum of 2^(score − m) over the keys so far, row 2 + d the sum of 2^(score − m)·v[d]. Unused when first and
 * last are both true. -1 beyond 64 bits. */
int64_t smalti_attention_state(int64_t queries, int64_t heads, int64_t head_dim);

/* Attends. `state` is written when first, updated otherwise (NULL allowed when first && last); y [queries,
 * heads·head_dim], contiguous, is written when last (else NULL allowed). Rows where no key has any weight
 * (none at all, or every score -inf) are 0. head_dim is at most 1024. */
int smalti_attention(const struct smalti_attention *attention, const void *q,
		     const struct smalti_keys *blocks, float *state, void *y, struct smalti_error *error);
