/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"
#include "base/dtype.h"

/* Keys and values of some tokens. */
struct smalti_keys {
	int64_t count;
	const void *k, *v;
};

/* Attention of a block of queries, streamed over blocks of keys with an online softmax: the scores are
 * never whole in memory. A call takes some blocks of keys; the caller's order of blocks fixes the
 * arithmetic, whatever calls they are spread over, so the bits do not depend on who runs it when.
 *
 * Head h is columns h·head_dim … of each token's row. Softmax and sums in f32. An infinite query or key,
 * which is what f16 makes of numbers beyond 65504, gives NaN: it must not pass for a key without any weight.
 */
struct smalti_attention {
	int64_t queries; /* tokens */
	int64_t blocks;  /* of keys, of this call */
	int64_t heads, head_dim;
	int64_t q_stride, k_stride, v_stride; /* elements from a token to the next */
	enum smalti_dtype dtype;              /* of q, k, v and y */
	float scale;                          /* on the scores, before bias */
	bool first, last;                     /* whether the first and the last block are in this call */
	/* NULL, or f32 [heads, bias_length]: what is added to head h's score of query i and key j, counted
	 * over the blocks of this call, is bias[h][bias_origin + j − i] (a relative position bias,
	 * docs/reference.md 2.2). */
	const float *bias;
	int64_t bias_length, bias_origin;
	/* NULL, or f32 [heads, queries], written when last: of each query the logarithm to the base 2 of the
	 * sum of 2^score over all keys, with scores in units of ln 2 (kernels/backward.h). */
	float *lse;
};

/* Floats of the running state of a block of queries, f32 [heads, 2 + head_dim, queries], the same for every
 * instruction set and kind of device. Of each query, with scores in units of ln 2: row 0 has the origin m of
 * its exponents (-inf: no key yet had any weight; else no score is larger than m + 16), row 1 the sum of
 * 2^(score − m) over the keys so far, row 2 + d the sum of 2^(score − m)·v[d]. Unused when first and last are
 * both true. -1 beyond 64 bits. */
int64_t smalti_attention_state(int64_t queries, int64_t heads, int64_t head_dim);

/* `state` is written when first, updated otherwise (NULL allowed when first && last);
 * y [queries, heads·head_dim], contiguous, is written when last (else NULL allowed); rows where no key
 * has any weight (none at all, or every score -inf) are 0. head_dim is at most 1024. */
int smalti_attention(const struct smalti_attention *attention, const void *q,
		     const struct smalti_keys *blocks, float *state, void *y, struct smalti_error *error);
