/* SPDX-License-Identifier: Apache-2.0 */
#include "harness.h"
#include "kernels/attention.h"
#include "kernels/cpu/kernels.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct shape {
	int64_t queries, keys, heads, head_dim;
	bool bias;
	int64_t cut; /* keys of each block; 0: all in one */
};

static const struct shape shapes[] = {
    {1, 1, 1, 1, false, 0},      {1, 7, 2, 3, false, 0},        {3, 1, 1, 8, true, 0},
    {7, 13, 3, 5, true, 4},      {17, 31, 2, 24, false, 10},    {16, 96, 2, 32, true, 96},
    {64, 64, 6, 24, false, 0},   {20, 20, 4, 64, true, 7},      {33, 97, 2, 72, false, 96},
    {48, 200, 2, 72, false, 50}, {49, 193, 1, 73, true, 101},   {97, 300, 1, 512, false, 128},
    {31, 5, 1, 1024, false, 2},  {130, 113, 3, 40, false, 112}, {2, 1000, 1, 16, true, 333},
    {47, 289, 2, 33, true, 257}, {32, 256, 1, 64, false, 31},   {5, 520, 1, 15, false, 512},
};

/* Everything that a call needs, and the answer in double. */
struct problem {
	struct shape shape;
	struct smalti_attention attention;
	int64_t stride, bias_length;
	float *q, *k, *v, *bias, *y;
	void *operands[4]; /* q, k, v and y in the dtype of the attention: the above when that is f32 */
	double *expected;
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

static void expect_row(struct problem *p, int64_t head, int64_t query, double *scores)
{
	const struct shape *s = &p->shape;
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

/* q, k and v become what bf16 holds of them. */
static void narrow(struct problem *p)
{
	const struct shape *s = &p->shape;
	float *wide[3] = {p->q, p->k, p->v};
	for (int i = 0; i < 3; i++) {
		int64_t count = (i ? s->keys : s->queries) * p->stride;
		p->operands[i] = malloc((size_t)count * 2 + 1);
		smalti_narrow(SMALTI_BF16, wide[i], count, p->operands[i]);
		smalti_widen(SMALTI_BF16, p->operands[i], count, wide[i]);
	}
	p->operands[3] = malloc((size_t)(s->queries * s->heads * s->head_dim) * 2 + 1);
}

static struct problem make_problem(const struct shape *shape, float spread, enum smalti_dtype dtype)
{
	struct problem p = {.shape = *shape};
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
	if (dtype == SMALTI_BF16)
		narrow(&p);
	else
		memcpy(p.operands, (void *[]){p.q, p.k, p.v, p.y}, sizeof(p.operands));
	return p;
}

static void expect(struct problem *p)
{
	double *scores = malloc((size_t)p->shape.keys * sizeof(double));
	for (int64_t head = 0; head < p->shape.heads; head++)
		for (int64_t query = 0; query < p->shape.queries; query++)
			expect_row(p, head, query, scores);
	free(scores);
}

static void free_problem(struct problem *p)
{
	for (int i = 0; i < 4 && p->attention.dtype == SMALTI_BF16; i++)
		free(p->operands[i]);
	free(p->q);
	free(p->k);
	free(p->v);
	free(p->bias);
	free(p->y);
	free(p->expected);
}

/* Beyond the rounding of a bf16 result. */
static double largest_error(const struct problem *p)
{
	const double rounding = p->attention.dtype == SMALTI_BF16 ? 0x1p-8 : 0;
	double largest = 0;
	for (int64_t i = 0; i < p->shape.queries * p->shape.heads * p->shape.head_dim; i++) {
		double error = fabs((double)p->y[i] - p->expected[i]) - rounding * fabs(p->expected[i]);
		largest = isnan(error) ? INFINITY : fmax(largest, error);
	}
	return largest;
}

static void call(enum smalti_isa isa, const struct smalti_attention *a, const void *q,
		 const struct smalti_keys *blocks, float *state, void *y)
{
	const struct smalti_cpu_kernels *kernels = smalti_cpu_kernels(isa);
	int64_t floats = kernels->attention_scratch(a);
	float *scratch = aligned_alloc(64, (size_t)((floats + 15) / 16 * 64));
	memset(scratch, 0xff, (size_t)floats * sizeof(float)); /* NaN: nothing may be read unwritten */
	kernels->attention(a, q, blocks, state, y, scratch);
	free(scratch);
}

static void widen_result(const struct problem *p)
{
	if (p->attention.dtype == SMALTI_BF16)
		smalti_widen(SMALTI_BF16, p->operands[3],
			     p->shape.queries * p->shape.heads * p->shape.head_dim, p->y);
}

/* `count` keys from `first` on. */
static struct smalti_keys keys_of(const struct problem *p, int64_t first, int64_t count)
{
	int64_t skipped = first * p->stride * smalti_dtype_bytes(p->attention.dtype);
	return (struct smalti_keys){count, (char *)p->operands[1] + skipped,
				    (char *)p->operands[2] + skipped};
}

static void call_whole(enum smalti_isa isa, const struct problem *p)
{
	const struct smalti_keys keys = keys_of(p, 0, p->shape.keys);
	call(isa, &p->attention, p->operands[0], &keys, NULL, p->operands[3]);
	widen_result(p);
}

/* In blocks of `cut` keys, `most` of them in a call, as a graph of bands does. */
static void call_in_blocks(enum smalti_isa isa, const struct problem *p, int64_t cut, int64_t most)
{
	struct smalti_attention a = p->attention;
	struct smalti_keys blocks[128];
	int64_t floats = smalti_attention_state(a.queries, a.heads, a.head_dim);
	float *state = malloc((size_t)floats * sizeof(float));
	memset(state, 0xff, (size_t)floats * sizeof(float));
	for (int64_t key = 0; key < p->shape.keys;) {
		a.first = key == 0;
		a.bias_origin = p->attention.bias_origin + key;
		for (a.blocks = 0; a.blocks < most && key < p->shape.keys; a.blocks++) {
			int64_t count = p->shape.keys - key < cut ? p->shape.keys - key : cut;
			blocks[a.blocks] = keys_of(p, key, count);
			key += count;
		}
		a.last = key == p->shape.keys;
		call(isa, &a, p->operands[0], blocks, a.first && a.last ? NULL : state,
		     a.last ? p->operands[3] : NULL);
	}
	free(state);
	widen_result(p);
}

static const char *name_of(enum smalti_isa isa, const struct shape *s)
{
	static char name[128];
	snprintf(name, sizeof(name), "%s, %lld queries, %lld keys, %lld heads of %lld", smalti_isa_name(isa),
		 (long long)s->queries, (long long)s->keys, (long long)s->heads, (long long)s->head_dim);
	return name;
}

/* Values are below 1 in size: 2e-6 is a few roundings of f32. Units of bf16 round the weights too, each by
 * 2^-8 of it at most; these errors partly cancel. */
static double tolerance(enum smalti_isa isa, enum smalti_dtype dtype)
{
	return dtype == SMALTI_F32 || isa < SMALTI_ISA_AVX512_BF16 ? 2e-6 : 3e-3;
}

/* `loss` is how much larger an error may be, for scores that are large. */
static void compare(const struct shape *shape, float spread, enum smalti_dtype dtype, double loss)
{
	struct problem p = make_problem(shape, spread, dtype);
	expect(&p);
	for (int i = 0; i <= (int)smalti_isa(); i++) {
		enum smalti_isa isa = (enum smalti_isa)i;
		call_whole(isa, &p);
		CHECK(largest_error(&p) < loss * tolerance(isa, dtype), name_of(isa, shape));
		if (!shape->cut)
			continue;
		memset(p.y, 0xff, (size_t)(p.shape.queries * p.shape.heads * p.shape.head_dim) * 4);
		call_in_blocks(isa, &p, shape->cut, 1);
		CHECK(largest_error(&p) < loss * tolerance(isa, dtype), name_of(isa, shape));
	}
	free_problem(&p);
}

static void agrees_with_double(void)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		compare(&shapes[i], 1, SMALTI_F32, 1);
}

/* Operands are taken exactly: the answer is that of the rounded operands, rounded once. */
static void takes_bf16(void)
{
	for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
		compare(&shapes[i], 1, SMALTI_BF16, 1);
}

/* Scores of several hundreds: all weight on few keys, the others underflow. */
static void survives_large_scores(void)
{
	const struct shape shape = {19, 150, 2, 24, false, 40};
	compare(&shape, 40, SMALTI_F32, 250);
	compare(&shape, 40, SMALTI_BF16, 250);
}

/* Negative scores are the larger ones then; every score is far below 0. */
static void takes_a_negative_scale(void)
{
	const struct shape shape = {5, 37, 1, 8, false, 9};
	for (int dtype = 0; dtype < 2; dtype++) {
		struct problem p = make_problem(&shape, 1, dtype ? SMALTI_BF16 : SMALTI_F32);
		p.attention.scale = -p.attention.scale;
		expect(&p);
		for (int i = 0; i <= (int)smalti_isa(); i++) {
			call_in_blocks((enum smalti_isa)i, &p, shape.cut, 1);
			CHECK(largest_error(&p) < tolerance((enum smalti_isa)i, p.attention.dtype),
			      name_of((enum smalti_isa)i, &shape));
		}
		free_problem(&p);
	}
}

/* Keys masked to nothing: a block of -inf before any other, and rows where all are. */
static void mask_keys(enum smalti_dtype dtype)
{
	const struct shape shape = {5, 12, 1, 8, true, 4};
	struct problem p = make_problem(&shape, 1, dtype);
	const int64_t origin = p.attention.bias_origin;
	for (int64_t i = 0; i < p.bias_length; i++)
		p.bias[i] = i < origin + 8 - 4 ? -INFINITY : 0; /* query i sees keys from 4 + i on */
	expect(&p);
	for (int i = 0; i <= (int)smalti_isa(); i++) {
		enum smalti_isa isa = (enum smalti_isa)i;
		call_whole(isa, &p);
		CHECK(largest_error(&p) < tolerance(isa, dtype), name_of(isa, &shape));
		call_in_blocks(isa, &p, shape.cut, 2);
		CHECK(largest_error(&p) < tolerance(isa, dtype), name_of(isa, &shape));
	}
	for (int64_t i = 0; i < p.bias_length; i++)
		p.bias[i] = -INFINITY;
	memset(p.expected, 0, (size_t)(shape.queries * shape.head_dim) * sizeof(double));
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		call_whole((enum smalti_isa)isa, &p);
		CHECK(largest_error(&p) == 0, name_of((enum smalti_isa)isa, &shape));
	}
	free_problem(&p);
}

static void masked_keys_weigh_nothing(void)
{
	mask_keys(SMALTI_F32);
	mask_keys(SMALTI_BF16);
}

/* No keys at all, and an empty block before and after some, which changes nothing. */
static void attend_to_nothing(enum smalti_isa isa, const struct problem *p, float *state)
{
	void *const *o = p->operands;
	const int64_t count = p->shape.queries * p->shape.heads * p->shape.head_dim;
	struct smalti_attention a = p->attention;
	struct smalti_keys blocks[3] = {keys_of(p, 0, 0), keys_of(p, 0, p->shape.keys), keys_of(p, 0, 0)};
	a.blocks = 0;
	memset(o[3], 0xff, (size_t)(count * smalti_dtype_bytes(a.dtype)));
	call(isa, &a, o[0], NULL, NULL, o[3]);
	widen_result(p);
	CHECK(test_max_abs(p->y, count) == 0 && p->y[0] == 0, "no keys at all");
	a.blocks = 3;
	call(isa, &a, o[0], blocks, NULL, o[3]);
	widen_result(p);
	CHECK(largest_error(p) < tolerance(isa, a.dtype), "empty blocks beside the keys");
	a.blocks = 1;
	a.last = false;
	call(isa, &a, o[0], &blocks[0], state, NULL);
	a.first = false;
	call(isa, &a, o[0], &blocks[1], state, NULL);
	a.last = true;
	call(isa, &a, o[0], &blocks[2], state, o[3]);
	widen_result(p);
	CHECK(largest_error(p) < tolerance(isa, a.dtype), "empty blocks around the keys");
}

static void no_keys_give_zero(void)
{
	const struct shape shape = {5, 12, 2, 24, false, 0};
	float *state = malloc((size_t)smalti_attention_state(5, 2, 24) * sizeof(float));
	for (int dtype = 0; dtype < 2; dtype++) {
		struct problem p = make_problem(&shape, 1, dtype ? SMALTI_BF16 : SMALTI_F32);
		expect(&p);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++)
			attend_to_nothing((enum smalti_isa)isa, &p, state);
		free_problem(&p);
	}
	free(state);
}

static void no_queries_write_nothing(void)
{
	const struct shape shape = {0, 12, 2, 24, false, 0};
	float untouched = 7;
	for (int dtype = 0; dtype < 2; dtype++) {
		struct problem p = make_problem(&shape, 1, dtype ? SMALTI_BF16 : SMALTI_F32);
		const struct smalti_keys keys = keys_of(&p, 0, shape.keys);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			call((enum smalti_isa)isa, &p.attention, p.operands[0], &keys, NULL, &untouched);
			CHECK(untouched == 7, name_of((enum smalti_isa)isa, &shape));
		}
		free_problem(&p);
	}
}

static void not_a_number_stays_in_its_row(void)
{
	const struct shape shape = {20, 30, 1, 16, false, 0};
	const uint32_t payload = 0x7fc00001; /* which arithmetic on the exponent would turn into a number */
	for (int dtype = 0; dtype < 2; dtype++) {
		struct problem p = make_problem(&shape, 1, dtype ? SMALTI_BF16 : SMALTI_F32);
		if (dtype)
			((uint16_t *)p.operands[0])[3 * p.stride] = 0xffff;
		else
			memcpy(&p.q[3 * p.stride], &payload, sizeof(payload));
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			call_whole((enum smalti_isa)isa, &p);
			bool ok = true;
			for (int64_t i = 0; i < 20 * 16; i++)
				ok = ok && !isnan(p.y[i]) == (i / 16 != 3);
			CHECK(ok, name_of((enum smalti_isa)isa, &shape));
		}
		free_problem(&p);
	}
}

/* The same blocks in one call, in a call each, in calls of three. */
static void calls_change_no_bit(void)
{
	for (size_t i = 0; i < 2 * sizeof(shapes) / sizeof(shapes[0]); i++) {
		const struct shape *shape = &shapes[i / 2];
		struct problem p = make_problem(shape, 1, i % 2 ? SMALTI_BF16 : SMALTI_F32);
		const size_t bytes =
		    (size_t)(shape->queries * shape->heads * shape->head_dim) * sizeof(float);
		float *before = malloc(bytes);
		for (int isa = 0; shape->cut && isa <= (int)smalti_isa(); isa++) {
			call_in_blocks((enum smalti_isa)isa, &p, shape->cut, 128);
			memcpy(before, p.y, bytes);
			for (int64_t most = 1; most <= 3; most += 2) {
				call_in_blocks((enum smalti_isa)isa, &p, shape->cut, most);
				CHECK(!memcmp(before, p.y, bytes), name_of((enum smalti_isa)isa, shape));
			}
		}
		free(before);
		free_problem(&p);
	}
}

/* Blocks of 128 keys and multiples of that. */
static void whole_spans_change_no_bit(void)
{
	const struct shape shape = {37, 600, 2, 72, true, 0};
	const size_t bytes = (size_t)(shape.queries * shape.heads * shape.head_dim) * sizeof(float);
	float *before = malloc(bytes);
	for (int dtype = 0; dtype < 2; dtype++) {
		struct problem p = make_problem(&shape, 1, dtype ? SMALTI_BF16 : SMALTI_F32);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			call_whole((enum smalti_isa)isa, &p);
			memcpy(before, p.y, bytes);
			for (int64_t cut = 128; cut <= 512; cut += 128) {
				call_in_blocks((enum smalti_isa)isa, &p, cut, 2);
				CHECK(!memcmp(before, p.y, bytes), name_of((enum smalti_isa)isa, &shape));
			}
		}
		free_problem(&p);
	}
	free(before);
}

static void repeat(enum smalti_dtype dtype)
{
	const struct shape shape = {50, 170, 2, 72, true, 64};
	const size_t bytes =
	    (size_t)(shape.queries * shape.heads * shape.head_dim * smalti_dtype_bytes(dtype));
	struct problem p = make_problem(&shape, 1, dtype);
	void *const *o = p.operands;
	const struct smalti_keys keys = keys_of(&p, 0, shape.keys);
	void *before = malloc(bytes);
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int again = 0; again < 3; again++) {
		SUCCEEDS(smalti_attention(&p.attention, o[0], &keys, NULL, o[3], &error), &error,
			 "public call");
		CHECK(!again || !memcmp(before, o[3], bytes), "the same bits");
		memcpy(before, o[3], bytes);
	}
	call(smalti_isa(), &p.attention, o[0], &keys, NULL, o[3]);
	CHECK(!memcmp(before, o[3], bytes), "the public function is this machine's kernel");
	free(before);
	free_problem(&p);
}

static void repeats_to_the_bit(void)
{
	repeat(SMALTI_F32);
	repeat(SMALTI_BF16);
}

static void refuses_nonsense(void)
{
	const struct smalti_attention good = {4, 2, 2, 8, 16, 16, 16, SMALTI_F32, 1, true, true, NULL, 0, 0};
	const float bias[2 * 8] = {0};
	enum { CASES = 11 };
	struct smalti_attention cases[CASES];
	struct smalti_keys keys[CASES][2];
	for (int i = 0; i < CASES; i++) {
		cases[i] = good;
		keys[i][0] = (struct smalti_keys){3, bias, bias};
		keys[i][1] = (struct smalti_keys){2, bias, bias};
	}
	cases[0].queries = -1;
	keys[1][1].count = INT64_MAX;
	keys[10][0].count = -1;
	cases[2].heads = 0;
	cases[3].head_dim = 1025;
	cases[4].q_stride = 15;
	cases[5].dtype = SMALTI_F16;
	cases[6].bias = cases[7].bias = bias;
	cases[6].bias_length = cases[7].bias_length = 8;
	cases[6].bias_origin = 2;
	cases[7].bias_origin = 4;
	cases[8].last = false;
	for (int i = 0; i < CASES; i++) { /* of which 9 has no result */
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_attention(&cases[i], bias, keys[i], NULL, NULL, &error), &error, SMALTI_EINVAL,
		      "nonsense", "attention");
	}
	CU_ASSERT_EQUAL(smalti_attention_state(INT64_MAX - 20, 16, 72), -1);
	CU_ASSERT_TRUE(smalti_attention_state(5, 2, 24) >= 2 * 5 * (24 + 2));
}

static const struct test tests[] = {
    {"agrees with double arithmetic, whole and in blocks", agrees_with_double},
    {"takes bf16", takes_bf16},
    {"survives large scores", survives_large_scores},
    {"takes a negative scale", takes_a_negative_scale},
    {"masked keys weigh nothing", masked_keys_weigh_nothing},
    {"no keys give zero", no_keys_give_zero},
    {"no queries write nothing", no_queries_write_nothing},
    {"NaN stays in its row", not_a_number_stays_in_its_row},
    {"calls change no bit", calls_change_no_bit},
    {"blocks of whole spans change no bit", whole_spans_change_no_bit},
    {"repeats to the bit", repeats_to_the_bit},
    {"refuses nonsense", refuses_nonsense},
};

TEST_MAIN("attention", tests)
