/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels/kernels.h"
#include "kernels/scratch.h"

int64_t smalti_attention_state(int64_t queries, int64_t heads, int64_t head_dim)
{
	int64_t floats = queries;
	if (head_dim > INT64_MAX - 2)
		return -1;
	return smalti_multiply(&floats, head_dim + 2) && smalti_multiply(&floats, heads) ? floats : -1;
}

/* 2^40 tokens exceed any memory, and keep the sizes of the working memory within 64 bits. */
static const int64_t max_tokens = (int64_t)1 << 40;

/* Counts the keys of a call; -1 for too many, or a negative number. */
static int64_t count_keys(int64_t blocks, const struct smalti_keys *block)
{
	int64_t keys = 0;
	for (int64_t i = 0; i < blocks; i++) {
		if (block[i].count < 0 || block[i].count > max_tokens - keys)
			return -1;
		keys += block[i].count;
	}
	return keys;
}

static int check_attention(const struct smalti_attention *a, const struct smalti_keys *blocks,
			   struct smalti_error *error)
{
	int64_t width = a->heads * a->head_dim, keys = count_keys(a->blocks, blocks);
	if (a->queries < 0 || a->queries > max_tokens || keys < 0)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "attention of %lld queries and %lld blocks of keys: expected at most 2^40 tokens",
		    (long long)a->queries, (long long)a->blocks);
	if (a->heads < 1 || a->heads > 1 << 16 || a->head_dim < 1 || a->head_dim > 1024)
		return smalti_fail(error, SMALTI_EINVAL,
				   "attention of %lld heads of %lld: expected 1 to 65536 heads of 1 to 1024",
				   (long long)a->heads, (long long)a->head_dim);
	if (a->q_stride < width || a->k_stride < width || a->v_stride < width)
		return smalti_fail(
		    error, SMALTI_EINVAL, "attention with strides %lld, %lld, %lld: expected at least %lld",
		    (long long)a->q_stride, (long long)a->k_stride, (long long)a->v_stride, (long long)width);
	if (a->bias && a->queries && keys &&
	    (a->bias_origin - (a->queries - 1) < 0 || a->bias_origin + keys > a->bias_length))
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "attention with %lld biases, origin %lld: too few for %lld queries and %lld keys",
		    (long long)a->bias_length, (long long)a->bias_origin, (long long)a->queries,
		    (long long)keys);
	return 0;
}

int smalti_attention(const struct smalti_attention *attention, const void *q,
		     const struct smalti_keys *blocks, float *state, void *y, struct smalti_error *error)
{
	if (check_attention(attention, blocks, error) < 0)
		return -1;
	if ((!state && !(attention->first && attention->last)) || (!y && attention->last))
		return smalti_fail(error, SMALTI_EINVAL, "attention without %s",
				   y || !attention->last ? "a state between blocks" : "a result");
	int64_t floats = smalti_kernels()->attention_scratch(attention);
	float *scratch = smalti_scratch(SMALTI_SCRATCH_ATTENTION, floats * (int64_t)sizeof(float), error);
	if (!scratch)
		return -1;
	smalti_kernels()->attention(attention, q, blocks, state, y, scratch);
	return 0;
}
