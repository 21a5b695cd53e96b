/* SPDX-License-Identifier: Apache-2.0 */
/* The gradients head by head, and in a head block of keys by block of queries: the scores and the gradients
 * of their weights, keys as rows, then the three gradients from these. Heads are read and written in place.
 */
#include "codelets/codelets.h"
#include "kernels/backward.h"
#include "kernels/cpu/workspace.h"
#include "kernels/kernels.h"
#include "kernels/scratch.h"

double smalti_attention_backward_bytes(const struct attention_backward_arguments *a)
{
	const int64_t queries = (a->add_queries ? 3 : 2) * a->queries, keys = (a->add_keys ? 4 : 2) * a->keys;
	return smalti_bytes(a->dtype, 2 * a->queries + 2 * a->keys, a->heads * a->head_dim) +
	       smalti_bytes(SMALTI_F32, queries + keys, a->heads * a->head_dim) +
	       smalti_bytes(SMALTI_F32, a->queries, a->heads);
}

/* The sizes of a block: its scores and their gradients stay in a level-2 cache. */
enum { KEYS = 256, QUERIES = 256, MAX_DIM = 1024 };

struct work {
	float *delta;              /* of each query: see struct smalti_attention_weights */
	float *scores, *gradients; /* [KEYS, QUERIES], rounded in the end */
};

static int64_t lay_out(const struct attention_backward_arguments *a, float *scratch, struct work *work)
{
	const struct part parts[] = {
	    {&work->delta, a->queries},
	    {&work->scores, KEYS * QUERIES},
	    {&work->gradients, KEYS * QUERIES},
	};
	return workspace_layout(scratch, parts, COUNT_OF(parts));
}

/* Return the elements from a query to the next, and from a key to the next. @{ */
static int64_t width_of(const struct attention_backward_arguments *a)
{
	return a->heads * a->head_dim;
}

static int64_t kv_stride(const struct attention_backward_arguments *a)
{
	return 2 * width_of(a);
}
/* @} */

/* Returns x from an element on. */
static const void *from(int64_t element, enum smalti_dtype dtype, const void *x)
{
	return (const char *)x + element * smalti_dtype_bytes(dtype);
}

/* Computes Σ y ⊙ gy of each query. */
static void sum_products(const struct attention_backward_arguments *a, const void *y, const float *gy,
			 float *delta)
{
	const int64_t dim = a->head_dim, width = width_of(a);
	float result[MAX_DIM], gradient[MAX_DIM];
	for (int64_t query = 0; query < a->queries; query++) {
		smalti_operand(dim, a->dtype, from(query * width, a->dtype, y), a->dtype, result);
		smalti_operand(dim, SMALTI_F32, gy + query * width, a->dtype, gradient);
		double sum = 0;
		for (int64_t d = 0; d < dim; d++)
			sum += (double)(result[d] * gradient[d]);
		delta[query] = (float)sum;
	}
}

/* Keys from `key` on and queries from `query` on, of one head. */
struct block {
	int64_t key, keys, query, queries;
};

/* A head's values and gradients, in the rows of all heads. */
struct head {
	const void *q, *k, *v, *y;
	const float *lse, *gy;
	float *gq, *gk, *gv;
};

static struct head head_of(const struct attention_backward_arguments *a,
			   const struct attention_backward_data *data, int64_t head)
{
	const int64_t at = head * a->head_dim, value = width_of(a) + at;
	return (struct head){.q = from(at, a->dtype, data->q),
			     .k = from(at, a->dtype, data->kv),
			     .v = from(value, a->dtype, data->kv),
			     .y = from(at, a->dtype, data->y),
			     .lse = (const float *)data->lse + head * a->queries,
			     .gy = (const float *)data->gy + at,
			     .gq = (float *)data->gq + at,
			     .gk = (float *)data->gkv + at,
			     .gv = (float *)data->gkv + value};
}

/* Computes [keys, queries] = left·rightᵀ of keys or values and queries; `dtype` is the right operand's. */
static int multiply_rows(const struct attention_backward_arguments *a, const struct block *b,
			 const void *left, enum smalti_dtype dtype, const void *right, float *y,
			 struct smalti_error *error)
{
	const struct smalti_dense dense = {.rows = b->keys,
					   .inner = a->head_dim,
					   .columns = b->queries,
					   .turned_b = true,
					   .a_dtype = a->dtype,
					   .b_dtype = dtype,
					   .compute = a->dtype,
					   .a_stride = kv_stride(a),
					   .b_stride = width_of(a)};
	return smalti_dense(&dense, from(b->key * kv_stride(a), a->dtype, left),
			    from(b->query * width_of(a), dtype, right), y, error);
}

/* Computes the gradient of keys or values (+)= [keys, queries]·x. */
static int add_to_keys(const struct attention_backward_arguments *a, const struct block *b,
		       const float *factor, enum smalti_dtype dtype, const void *x, float *gradient,
		       struct smalti_error *error)
{
	const struct smalti_dense dense = {.rows = b->keys,
					   .inner = b->queries,
					   .columns = a->head_dim,
					   .add = a->add_keys || b->query > 0,
					   .a_dtype = smalti_product_dtype(a->dtype),
					   .b_dtype = dtype,
					   .compute = a->dtype,
					   .b_stride = width_of(a),
					   .y_stride = kv_stride(a)};
	return smalti_dense(&dense, factor, from(b->query * width_of(a), dtype, x),
			    gradient + b->key * kv_stride(a), error);
}

static int add_to_queries(const struct attention_backward_arguments *a, const struct block *b,
			  const float *factor, const void *k, float *gradient, struct smalti_error *error)
{
	const struct smalti_dense dense = {.rows = b->queries,
					   .inner = b->keys,
					   .columns = a->head_dim,
					   .turned_a = true,
					   .add = a->add_queries || b->key > 0,
					   .a_dtype = smalti_product_dtype(a->dtype),
					   .b_dtype = a->dtype,
					   .compute = a->dtype,
					   .b_stride = kv_stride(a),
					   .y_stride = width_of(a)};
	return smalti_dense(&dense, factor, from(b->key * kv_stride(a), a->dtype, k),
			    gradient + b->query * width_of(a), error);
}

static int do_block(const struct attention_backward_arguments *a, const struct block *b,
		    const struct head *head, const struct work *work, struct smalti_error *error)
{
	const struct smalti_attention_weights weights = {b->keys, b->queries, a->dtype,
							 smalti_product_dtype(a->dtype), a->scale};
	if (multiply_rows(a, b, head->k, a->dtype, head->q, work->scores, error) < 0 ||
	    multiply_rows(a, b, head->v, SMALTI_F32, head->gy, work->gradients, error) < 0)
		return -1;
	smalti_kernels()->attention_weights(&weights, head->lse + b->query, work->delta + b->query,
					    work->scores, work->gradients);
	if (add_to_keys(a, b, work->scores, SMALTI_F32, head->gy, head->gv, error) < 0 ||
	    add_to_keys(a, b, work->gradients, a->dtype, head->q, head->gk, error) < 0)
		return -1;
	return add_to_queries(a, b, work->gradients, head->k, head->gq, error);
}

static int do_head(const struct attention_backward_arguments *a, const struct head *head,
		   const struct work *work, struct smalti_error *error)
{
	sum_products(a, head->y, head->gy, work->delta);
	struct block block = {0};
	for (; block.key < a->keys; block.key += KEYS)
		for (block.query = 0; block.query < a->queries; block.query += QUERIES) {
			block.keys = smalti_min(a->keys - block.key, KEYS);
			block.queries = smalti_min(a->queries - block.query, QUERIES);
			if (do_block(a, &block, head, work, error) < 0)
				return -1;
		}
	return 0;
}

static int check(const struct attention_backward_arguments *a, struct smalti_error *error)
{
	const int64_t max_tokens = (int64_t)1 << 32;
	if (a->heads < 1 || a->heads > 1 << 16 || a->head_dim < 1 || a->head_dim > MAX_DIM ||
	    a->queries < 1 || a->keys < 1 || a->queries > max_tokens || a->keys > max_tokens)
		return smalti_fail(error, SMALTI_EINVAL,
				   "attention's gradients of %lld queries, %lld keys and %lld heads of %lld: "
				   "expected 1 to 2^32 tokens, and 1 to 65536 heads of 1 to 1024",
				   (long long)a->queries, (long long)a->keys, (long long)a->heads,
				   (long long)a->head_dim);
	return 0;
}

int smalti_cpu_attention_backward(const struct attention_backward_data *data,
				  const struct attention_backward_arguments *a, struct smalti_error *error)
{
	struct work work;
	if (check(a, error) < 0)
		return -1;
	const int64_t bytes = lay_out(a, NULL, &work) * (int64_t)sizeof(float);
	float *scratch = smalti_scratch(SMALTI_SCRATCH_ATTENTION, bytes, error);
	if (!scratch)
		return -1;
	lay_out(a, scratch, &work);
	for (int64_t i = 0; i < a->heads; i++) {
		const struct head head = head_of(a, data, i);
		if (do_head(a, &head, &work, error) < 0)
			return -1;
	}
	return 0;
}
