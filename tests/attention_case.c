/* SPDX-License-Identifier: Apache-2.0 */
#include "attention_case.h"

#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct attention_shape attention_shapes[ATTENTION_SHAPES] = {
    {1, 1, 1, 1, false, 0},      {1, 7, 2, 3, false, 0},        {3, 1, 1, 8, true, 0},
    {7, 13, 3, 5, true, 4},      {17, 31, 2, 24, false, 10},    {16, 96, 2, 32, true, 96},
    {64, 64, 6, 24, false, 0},   {20, 20, 4, 64, true, 7},      {33, 97, 2, 72, false, 96},
    {48, 200, 2, 72, false, 50}, {49, 193, 1, 73, true, 101},   {97, 300, 1, 512, false, 128},
    {31, 5, 1, 1024, false, 2},  {130, 113, 3, 40, false, 112}, {2, 1000, 1, 16, true, 333},
    {47, 289, 2, 33, true, 257}, {32, 256, 1, 64, false, 31},   {5, 520, 1, 15, false, 512},
};

static float *random_floats(int64_t count, float scale, uint64_t *seed)
{
	float *values = malloc((size_t)(count + 1) * sizeof(float));
	for (int64_t i = 0; i < count; i++)
		values[i] = scale * test_random(seed);
	return values;
}

/* Columns past heads·head_dim hold NaN: a stride is honoured or the answer is ruined. */
static float *random_tokens(int64_t tokens, int64_t width, int64_t stride, float scale, uint64_t *seed)
{
	float *values = random_floats(tokens * stride, scale, seed);
	for (int64_t token = 0; token < tokens; token++)
		for (int64_t i = width; i < stride; i++)
			values[token * stride + i] = NAN;
	return values;
}

static void expect_row(struct attention_problem *p, int64_t head, int64_t query, double *scores)
{
	const struct attention_shape *s = &p->shape;
	const int64_t column = head * s->head_dim;
	double largest = -INFINITY, sum = 0;
	for (int64_t key = 0; key < s->keys; key++) {
		scores[key] = 0;
		for (int64_t d = 0; d < s->head_dim; d++)
			scores[key] += (double)p->q[query * p->stride + column + d] *
				       (double)p->k[key * p->stride + column + d];
		scores[key] *= (double)p->attention.scale;
		if (s->bias)
			scores[key] +=
			    (double)p->bias[head * p->bias_length + p->attention.bias_origin + key - query];
		largest = fmax(largest, scores[key]);
	}
	for (int64_t key = 0; key < s->keys; key++)
		sum += scores[key] = exp(scores[key] - largest);
	for (int64_t d = 0; d < s->head_dim; d++) {
		double value = 0;
		for (int64_t key = 0; key < s->keys; key++)
			value += scores[key] / sum * (double)p->v[key * p->stride + column + d];
		p->expected[query * s->heads * s->head_dim + column + d] = value;
	}
}

/* q, k and v become what the dtype holds of them. */
static void narrow(struct attention_problem *p)
{
	const struct attention_shape *s = &p->shape;
	float *wide[3] = {p->q, p->k, p->v};
	for (int i = 0; i < 3; i++) {
		int64_t count = (i ? s->keys : s->queries) * p->stride;
		p->operands[i] = malloc((size_t)count * 2 + 1);
		smalti_narrow(p->attention.dtype, wide[i], count, p->operands[i]);
		smalti_widen(p->attention.dtype, p->operands[i], count, wide[i]);
	}
	p->operands[3] = malloc((size_t)(s->queries * s->heads * s->head_dim) * 2 + 1);
}

struct attention_problem attention_problem(const struct attention_shape *shape, float spread,
					   enum smalti_dtype dtype)
{
	struct attention_problem p = {.shape = *shape};
	uint64_t seed = 42;
	int64_t width = shape->heads * shape->head_dim;
	p.stride = width + 3;
	p.bias_length = shape->queries + shape->keys + 5;
	p.q = random_tokens(shape->queries, width, p.stride, spread, &seed);
	p.k = random_tokens(shape->keys, width, p.stride, spread, &seed);
	p.v = random_tokens(shape->keys, width, p.stride, 1, &seed);
	p.bias = random_floats(shape->heads * p.bias_length, 4, &seed);
	p.y = calloc((size_t)(shape->queries * width), sizeof(float));
	p.expected = calloc((size_t)(shape->queries * width), sizeof(double));
	p.attention = (struct smalti_attention){
	    .queries = shape->queries,
	    .blocks = 1,
	    .heads = shape->heads,
	    .head_dim = shape->head_dim,
	    .q_stride = p.stride,
	    .k_stride = p.stride,
	    .v_stride = p.stride,
	    .dtype = dtype,
	    .scale = 1 / sqrtf((float)shape->head_dim),
	    .first = true,
	    .last = true,
	    .bias = shape->bias ? p.bias : NULL,
	    .bias_length = p.bias_length,
	    .bias_origin = shape->queries + 2,
	};
	if (dtype != SMALTI_F32)
		narrow(&p);
	else
		memcpy(p.operands, (void *[]){p.q, p.k, p.v, p.y}, sizeof(p.operands));
	return p;
}

void attention_expect(struct attention_problem *p)
{
	double *scores = malloc((size_t)p->shape.keys * sizeof(double));
	for (int64_t head = 0; head < p->shape.heads; head++)
		for (int64_t query = 0; query < p->shape.queries; query++)
			expect_row(p, head, query, scores);
	free(scores);
}

void attention_free(struct attention_problem *p)
{
	for (int i = 0; i < 4 && p->attention.dtype != SMALTI_F32; i++)
		free(p->operands[i]);
	free(p->q);
	free(p->k);
	free(p->v);
	free(p->bias);
	free(p->y);
	free(p->expected);
}

void attention_call(enum smalti_isa isa, const struct smalti_attention *a, const void *q,
		    const struct smalti_keys *blocks, float *state, void *y)
{
	const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels(isa);
	int64_t floats = kernels->attention_scratch(a);
	float *scratch = aligned_alloc(64, (size_t)((floats + 15) / 16 * 64));
	memset(scratch, 0xff, (size_t)floats * sizeof(float)); /* NaN: nothing may be read unwritten */
	kernels->attention(a, q, blocks, state, y, scratch);
	free(scratch);
}

void attention_widen(const struct attention_problem *p)
{
	if (p->attention.dtype != SMALTI_F32)
		smalti_widen(p->attention.dtype, p->operands[3],
			     p->shape.queries * p->shape.heads * p->shape.head_dim, p->y);
}

struct smalti_keys attention_keys(const struct attention_problem *p, int64_t first, int64_t count)
{
	int64_t skipped = first * p->stride * smalti_dtype_bytes(p->attention.dtype);
	return (struct smalti_keys){count, (char *)p->operands[1] + skipped,
				    (char *)p->operands[2] + skipped};
}

void attention_call_whole(enum smalti_isa isa, const struct attention_problem *p)
{
	const struct smalti_keys keys = attention_keys(p, 0, p->shape.keys);
	attention_call(isa, &p->attention, p->operands[0], &keys, NULL, p->operands[3]);
	attention_widen(p);
}

void attention_call_in_blocks(enum smalti_isa isa, const struct attention_problem *p, int64_t cut,
			      int64_t max)
{
	struct smalti_attention a = p->attention;
	struct smalti_keys blocks[128];
	int64_t floats = smalti_attention_state(a.queries, a.heads, a.head_dim);
	float *state = malloc((size_t)floats * sizeof(float));
	memset(state, 0xff, (size_t)floats * sizeof(float));
	for (int64_t key = 0; key < p->shape.keys;) {
		a.first = key == 0;
		a.bias_origin = p->attention.bias_origin + key;
		for (a.blocks = 0; a.blocks < max && key < p->shape.keys; a.blocks++) {
			int64_t count = p->shape.keys - key < cut ? p->shape.keys - key : cut;
			blocks[a.blocks] = attention_keys(p, key, count);
			key += count;
		}
		a.last = key == p->shape.keys;
		attention_call(isa, &a, p->operands[0], blocks, a.first && a.last ? NULL : state,
			       a.last ? p->operands[3] : NULL);
	}
	free(state);
	attention_widen(p);
}

const char *attention_name(enum smalti_isa isa, const struct attention_shape *s)
{
	static char name[128];
	snprintf(name, sizeof(name), "%s, %lld queries, %lld keys, %lld heads of %lld", smalti_isa_name(isa),
		 (long long)s->queries, (long long)s->keys, (long long)s->heads, (long long)s->head_dim);
	return name;
}
