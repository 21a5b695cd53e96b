/* SPDX-License-Identifier: Apache-2.0 */
/* Head by head, and in it block of keys by block of queries: the scores and the gradients of their weights,
 * keys as rows, then the three gradients that they give. Operands of products are copied to dense matrices,
 * rounded; gradients are summed in such, and added to the result at last. */
#include "kernels/backward.h"
#include "kernels/cpu/kernels.h"
#include "kernels/cpu/workspace.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"

/* Of a block: its scores and their gradients stay in a level-2 cache. */
enum { KEYS = 256, QUERIES = 128 };

/* What operands are multiplied in. In small blocks a bf16 product of AVX-512 costs more than one in f32,
 * whose operands are rounded alike. */
static enum smalti_dtype product_dtype(const struct smalti_attention_backward *a)
{
	return a->keys < KEYS && smalti_isa() < SMALTI_ISA_AMX ? SMALTI_F32 : smalti_product_dtype(a->dtype);
}

struct work {
	float *q, *gy, *k, *v;     /* of one head, as they are multiplied: [tokens, head_dim] */
	float *gq, *gk, *gv;       /* their gradients, f32 */
	float *delta;              /* of each query: see struct smalti_attention_weights */
	float *scores, *gradients; /* [KEYS, QUERIES] */
};

static int64_t lay_out(const struct smalti_attention_backward *a, float *scratch, struct work *work)
{
	const int64_t queries = a->queries * a->head_dim, keys = a->keys * a->head_dim;
	const struct part parts[] = {
	    {&work->q, queries},
	    {&work->gy, queries},
	    {&work->k, keys},
	    {&work->v, keys},
	    {&work->gq, queries},
	    {&work->gk, keys},
	    {&work->gv, keys},
	    {&work->delta, a->queries},
	    {&work->scores, KEYS * QUERIES},
	    {&work->gradients, KEYS * QUERIES},
	};
	return workspace_layout(scratch, parts, COUNT_OF(parts));
}

/* A head's columns of rows that are `width` long, rounded to the operands' dtype. */
static void pack(const struct smalti_attention_backward *a, int64_t rows, enum smalti_dtype from,
		 const void *x, int64_t head, void *to)
{
	const enum smalti_dtype stored = product_dtype(a);
	const int64_t dim = a->head_dim, width = a->heads * dim;
	for (int64_t row = 0; row < rows; row++) {
		const void *at = (const char *)x + (row * width + head * dim) * smalti_dtype_bytes(from);
		void *y = (char *)to + row * dim * smalti_dtype_bytes(stored);
		smalti_operand(dim, from, at, a->dtype, stored, y);
	}
}

/* Σ y ⊙ gy of each query. */
static void sum_products(const struct smalti_attention_backward *a, const struct work *work, const void *y,
			 int64_t head, float *delta)
{
	const enum smalti_dtype stored = product_dtype(a);
	const int64_t dim = a->head_dim, width = a->heads * dim;
	float result[1024], gradient[1024];
	for (int64_t query = 0; query < a->queries; query++) {
		const int64_t at = query * width + head * dim;
		smalti_convert(dim, a->dtype, (const char *)y + at * smalti_dtype_bytes(a->dtype), SMALTI_F32,
			       result);
		smalti_convert(dim, stored, (const char *)work->gy + query * dim * smalti_dtype_bytes(stored),
			       SMALTI_F32, gradient);
		double sum = 0;
		for (int64_t d = 0; d < dim; d++)
			sum += (double)(result[d] * gradient[d]);
		delta[query] = (float)sum;
	}
}

/* Puts or adds a head's gradient to its columns of all heads'. */
static void unpack(const struct smalti_attention_backward *a, int64_t rows, const float *from, int64_t head,
		   bool add, float *to)
{
	const int64_t dim = a->head_dim, width = a->heads * dim;
	to += head * dim;
	for (int64_t row = 0; row < rows; row++, from += dim, to += width)
		if (add)
			smalti_add(dim, to, from, to);
		else
			memcpy(to, from, (size_t)dim * sizeof(*to));
}

/* A block: keys `key` …, queries `query` …, of one head. */
struct block {
	int64_t key, keys, query, queries;
};

/* Of operands [tokens, head_dim], those of tokens `first` …. */
static const void *rows_from(const struct smalti_attention_backward *a, const float *x, int64_t first)
{
	return (const char *)x + first * a->head_dim * smalti_dtype_bytes(product_dtype(a));
}

/* [keys, queries] = left·rightᵀ */
static int multiply_rows(const struct smalti_attention_backward *a, const struct block *b, const float *left,
			 const float *right, float *y, struct smalti_error *error)
{
	const enum smalti_dtype dtype = product_dtype(a);
	const struct smalti_dense dense = {.rows = b->keys,
					   .inner = a->head_dim,
					   .columns = b->queries,
					   .turned_b = true,
					   .a_dtype = dtype,
					   .b_dtype = dtype,
					   .compute = dtype};
	return smalti_dense(&dense, rows_from(a, left, b->key), rows_from(a, right, b->query), y, error);
}

/* The gradient of keys or values += [keys, queries]·x. */
static int add_to_keys(const struct smalti_attention_backward *a, const struct block *b, const float *factor,
		       const float *x, float *gradient, struct smalti_error *error)
{
	const enum smalti_dtype dtype = product_dtype(a);
	const struct smalti_dense dense = {.rows = b->keys,
					   .inner = b->queries,
					   .columns = a->head_dim,
					   .add = b->query > 0,
					   .a_dtype = dtype,
					   .b_dtype = dtype,
					   .compute = dtype};
	return smalti_dense(&dense, factor, rows_from(a, x, b->query), gradient + b->key * a->head_dim,
			    error);
}

static int add_to_queries(const struct smalti_attention_backward *a, const struct block *b,
			  const struct work *work, struct smalti_error *error)
{
	const enum smalti_dtype dtype = product_dtype(a);
	const struct smalti_dense dense = {.rows = b->queries,
					   .inner = b->keys,
					   .columns = a->head_dim,
					   .turned_a = true,
					   .add = b->key > 0,
					   .a_dtype = dtype,
					   .b_dtype = dtype,
					   .compute = dtype};
	return smalti_dense(&dense, work->gradients, rows_from(a, work->k, b->key),
			    work->gq + b->query * a->head_dim, error);
}

static int do_block(const struct smalti_attention_backward *a, const struct block *b, const float *lse,
		    const struct work *work, struct smalti_error *error)
{
	const struct smalti_attention_weights weights = {b->keys, b->queries, a->dtype, product_dtype(a),
							 a->scale};
	if (multiply_rows(a, b, work->k, work->q, work->scores, error) < 0 ||
	    multiply_rows(a, b, work->v, work->gy, work->gradients, error) < 0)
		return -1;
	smalti_cpu_kernels(smalti_isa())
	    ->attention_weights(&weights, lse + b->query, work->delta + b->query, work->scores,
				work->gradients);
	if (add_to_keys(a, b, work->scores, work->gy, work->gv, error) < 0 ||
	    add_to_keys(a, b, work->gradients, work->q, work->gk, error) < 0)
		return -1;
	return add_to_queries(a, b, work, error);
}

static int do_head(const struct smalti_attention_backward *a, const struct smalti_attention_values *values,
		   int64_t head, const struct work *work, struct smalti_error *error)
{
	pack(a, a->queries, a->dtype, values->q, head, work->q);
	pack(a, a->queries, SMALTI_F32, values->gy, head, work->gy);
	pack(a, a->keys, a->dtype, values->k, head, work->k);
	pack(a, a->keys, a->dtype, values->v, head, work->v);
	sum_products(a, work, values->y, head, work->delta);
	struct block block = {0};
	for (; block.key < a->keys; block.key += KEYS)
		for (block.query = 0; block.query < a->queries; block.query += QUERIES) {
			block.keys = smalti_min(a->keys - block.key, KEYS);
			block.queries = smalti_min(a->queries - block.query, QUERIES);
			if (do_block(a, &block, values->lse + head * a->queries, work, error) < 0)
				return -1;
		}
	return 0;
}

static int check(const struct smalti_attention_backward *a, struct smalti_error *error)
{
	const int64_t most_tokens = (int64_t)1 << 32;
	if (a->heads < 1 || a->heads > 1 << 16 || a->head_dim < 1 || a->head_dim > 1024 || a->queries < 1 ||
	    a->keys < 1 || a->queries > most_tokens || a->keys > most_tokens)
		return smalti_fail(error, SMALTI_EINVAL,
				   "attention's gradients of %lld queries, %lld keys and %lld heads of %lld: "
				   "expected 1 to 2^32 tokens, and 1 to 65536 heads of 1 to 1024",
				   (long long)a->queries, (long long)a->keys, (long long)a->heads,
				   (long long)a->head_dim);
	return 0;
}

int smalti_attention_backward(const struct smalti_attention_backward *attention,
			      const struct smalti_attention_values *values,
			      const struct smalti_attention_gradients *gradients, struct smalti_error *error)
{
	struct work work;
	if (check(attention, error) < 0)
		return -1;
	const int64_t bytes = lay_out(attention, NULL, &work) * (int64_t)sizeof(float);
	float *scratch = smalti_scratch(SMALTI_SCRATCH_ATTENTION, bytes, error);
	if (!scratch)
		return -1;
	lay_out(attention, scratch, &work);
	for (int64_t head = 0; head < attention->heads; head++) {
		if (do_head(attention, values, head, &work, error) < 0)
			return -1;
		unpack(attention, attention->queries, work.gq, head, attention->add_queries, gradients->q);
		unpack(attention, attention->keys, work.gk, head, attention->add_keys, gradients->k);
		unpack(attention, attention->keys, work.gv, head, attention->add_keys, gradients->v);
	}
	return 0;
}
