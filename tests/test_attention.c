/* SPDX-License-Identifier: Apache-2.0 */
#include "attention_case.h"
#include "harness.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Beyond the rounding of a result of 16 bits. */
static double largest_error(const struct attention_problem *p)
{
	static const double roundings[] = {[SMALTI_F16] = 0x1p-11, [SMALTI_BF16] = 0x1p-8};
	const double rounding = roundings[p->attention.dtype];
	double largest = 0;
	for (int64_t i = 0; i < p->shape.queries * p->shape.heads * p->shape.head_dim; i++) {
		double error = fabs((double)p->y[i] - p->expected[i]) - rounding * fabs(p->expected[i]);
		largest = isnan(error) ? INFINITY : fmax(largest, error);
	}
	return largest;
}

/* Values are below 1 in size: 2e-6 is a few roundings of f32. Units of bf16 round the weights too, each by
 * 2^-8 of it at most; these errors partly cancel. */
static double tolerance(enum smalti_isa isa, enum smalti_dtype dtype)
{
	return dtype != SMALTI_BF16 || isa < SMALTI_ISA_AVX512_BF16 ? 2e-6 : 3e-3;
}

/* `loss` is how much larger an error may be, for scores that are large. */
static void compare(const struct attention_shape *shape, float spread, enum smalti_dtype dtype, double loss)
{
	struct attention_problem p = attention_problem(shape, spread, dtype);
	attention_expect(&p);
	for (int i = 0; i <= (int)smalti_isa(); i++) {
		enum smalti_isa isa = (enum smalti_isa)i;
		attention_call_whole(isa, &p);
		CHECK(largest_error(&p) < loss * tolerance(isa, dtype), attention_name(isa, shape));
		if (!shape->cut)
			continue;
		memset(p.y, 0xff, (size_t)(p.shape.queries * p.shape.heads * p.shape.head_dim) * 4);
		attention_call_in_blocks(isa, &p, shape->cut, 1);
		CHECK(largest_error(&p) < loss * tolerance(isa, dtype), attention_name(isa, shape));
	}
	attention_free(&p);
}

static void agrees_with_double(void)
{
	for (size_t i = 0; i < ATTENTION_SHAPES; i++)
		compare(&attention_shapes[i], 1, SMALTI_F32, 1);
}

/* Operands are taken exactly: the answer is that of the rounded operands, rounded once. */
static void takes_16_bits(void)
{
	for (size_t i = 0; i < ATTENTION_SHAPES; i++) {
		compare(&attention_shapes[i], 1, SMALTI_BF16, 1);
		compare(&attention_shapes[i], 1, SMALTI_F16, 1);
	}
}

/* Scores of several hundreds: all weight on few keys, the others underflow. */
static void survives_large_scores(void)
{
	const struct attention_shape shape = {19, 150, 2, 24, false, 40};
	compare(&shape, 40, SMALTI_F32, 250);
	compare(&shape, 40, SMALTI_BF16, 250);
	compare(&shape, 40, SMALTI_F16, 250);
}

/* Negative scores are the larger ones then; every score is far below 0. */
static void takes_a_negative_scale(void)
{
	const struct attention_shape shape = {5, 37, 1, 8, false, 9};
	for (enum smalti_dtype dtype = SMALTI_F32; dtype <= SMALTI_BF16; dtype++) {
		struct attention_problem p = attention_problem(&shape, 1, dtype);
		p.attention.scale = -p.attention.scale;
		attention_expect(&p);
		for (int i = 0; i <= (int)smalti_isa(); i++) {
			attention_call_in_blocks((enum smalti_isa)i, &p, shape.cut, 1);
			CHECK(largest_error(&p) < tolerance((enum smalti_isa)i, p.attention.dtype),
			      attention_name((enum smalti_isa)i, &shape));
		}
		attention_free(&p);
	}
}

/* A weight of e^-90 would be subnormal, and slow to multiply with: it is none, however large its value. */
static void no_weight_is_subnormal(void)
{
	const struct attention_shape shape = {1, 2, 1, 8, true, 0};
	struct attention_problem p = attention_problem(&shape, 1, SMALTI_F32);
	memset(p.q, 0, 8 * sizeof(*p.q));
	p.bias[p.attention.bias_origin] = 0;
	p.bias[p.attention.bias_origin + 1] = -90;
	for (int i = 0; i < 8; i++)
		p.v[p.stride + i] = 0x1p120f;
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		attention_call_whole((enum smalti_isa)isa, &p);
		CHECK(!memcmp(p.y, p.v, 8 * sizeof(*p.y)), attention_name((enum smalti_isa)isa, &shape));
	}
	attention_free(&p);
}

/* Keys masked to nothing: a block of -inf before any other, and rows where all are. */
static void mask_keys(enum smalti_dtype dtype)
{
	const struct attention_shape shape = {5, 12, 1, 8, true, 4};
	struct attention_problem p = attention_problem(&shape, 1, dtype);
	const int64_t origin = p.attention.bias_origin;
	for (int64_t i = 0; i < p.bias_length; i++)
		p.bias[i] = i < origin + 8 - 4 ? -INFINITY : 0; /* query i sees keys from 4 + i on */
	attention_expect(&p);
	for (int i = 0; i <= (int)smalti_isa(); i++) {
		enum smalti_isa isa = (enum smalti_isa)i;
		attention_call_whole(isa, &p);
		CHECK(largest_error(&p) < tolerance(isa, dtype), attention_name(isa, &shape));
		attention_call_in_blocks(isa, &p, shape.cut, 2);
		CHECK(largest_error(&p) < tolerance(isa, dtype), attention_name(isa, &shape));
	}
	for (int64_t i = 0; i < p.bias_length; i++)
		p.bias[i] = -INFINITY;
	memset(p.expected, 0, (size_t)(shape.queries * shape.head_dim) * sizeof(double));
	for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
		attention_call_whole((enum smalti_isa)isa, &p);
		CHECK(largest_error(&p) == 0, attention_name((enum smalti_isa)isa, &shape));
	}
	attention_free(&p);
}

static void masked_keys_weigh_nothing(void)
{
	mask_keys(SMALTI_F32);
	mask_keys(SMALTI_BF16);
	mask_keys(SMALTI_F16);
}

/* No keys at all, and an empty block before and after some, which changes nothing. */
static void attend_to_nothing(enum smalti_isa isa, const struct attention_problem *p, float *state)
{
	void *const *o = p->operands;
	const int64_t count = p->shape.queries * p->shape.heads * p->shape.head_dim;
	struct smalti_attention a = p->attention;
	struct smalti_keys blocks[3] = {attention_keys(p, 0, 0), attention_keys(p, 0, p->shape.keys),
					attention_keys(p, 0, 0)};
	a.blocks = 0;
	memset(o[3], 0xff, (size_t)(count * smalti_dtype_bytes(a.dtype)));
	attention_call(isa, &a, o[0], NULL, NULL, o[3]);
	attention_widen(p);
	CHECK(test_max_abs(p->y, count) == 0 && p->y[0] == 0, "no keys at all");
	a.blocks = 3;
	attention_call(isa, &a, o[0], blocks, NULL, o[3]);
	attention_widen(p);
	CHECK(largest_error(p) < tolerance(isa, a.dtype), "empty blocks beside the keys");
	a.blocks = 1;
	a.last = false;
	attention_call(isa, &a, o[0], &blocks[0], state, NULL);
	a.first = false;
	attention_call(isa, &a, o[0], &blocks[1], state, NULL);
	a.last = true;
	attention_call(isa, &a, o[0], &blocks[2], state, o[3]);
	attention_widen(p);
	CHECK(largest_error(p) < tolerance(isa, a.dtype), "empty blocks around the keys");
}

static void no_keys_give_zero(void)
{
	const struct attention_shape shape = {5, 12, 2, 24, false, 0};
	float *state = malloc((size_t)smalti_attention_state(5, 2, 24) * sizeof(float));
	for (enum smalti_dtype dtype = SMALTI_F32; dtype <= SMALTI_BF16; dtype++) {
		struct attention_problem p = attention_problem(&shape, 1, dtype);
		attention_expect(&p);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++)
			attend_to_nothing((enum smalti_isa)isa, &p, state);
		attention_free(&p);
	}
	free(state);
}

/* The state [heads, 2 + head_dim, queries] of the problem's keys, as the header says: against double. */
static void check_state(const struct attention_problem *p, const float *state, double limit, const char *name)
{
	const struct attention_shape *s = &p->shape;
	double largest = 0;
	for (int64_t head = 0; head < s->heads; head++)
		for (int64_t query = 0; query < s->queries; query++) {
			const float *row = state + head * (2 + s->head_dim) * s->queries + query;
			const double sum = (double)row[s->queries];
			for (int64_t d = 0; d < s->head_dim; d++) {
				const double value = (double)row[(2 + d) * s->queries] / sum;
				const double wanted =
				    p->expected[(query * s->heads + head) * s->head_dim + d];
				largest = fmax(largest, fabs(value - wanted));
			}
			CHECK(isfinite(row[0]) && sum > 0, name);
		}
	CHECK(largest < limit, name);
}

/* Half of the keys by one instruction set, the others by another. */
static void pass_on(const struct attention_problem *half, const struct attention_problem *whole, int first,
		    int second, float *state)
{
	const int64_t keys = half->shape.keys;
	const char *name = attention_name((enum smalti_isa)first, &half->shape);
	struct smalti_attention a = whole->attention;
	struct smalti_keys blocks[2] = {attention_keys(whole, 0, keys),
					attention_keys(whole, keys, whole->shape.keys - keys)};
	const double limit =
	    fmax(tolerance((enum smalti_isa)first, a.dtype), tolerance((enum smalti_isa)second, a.dtype));
	a.last = false;
	attention_call((enum smalti_isa)first, &a, whole->operands[0], &blocks[0], state, NULL);
	check_state(half, state, limit, name);
	a.first = false;
	a.last = true;
	a.bias_origin += keys;
	attention_call((enum smalti_isa)second, &a, whole->operands[0], &blocks[1], state,
		       whole->operands[3]);
	attention_widen(whole);
	CHECK(largest_error(whole) < limit, name);
}

static void any_instruction_set_goes_on(void)
{
	const struct attention_shape shape = {37, 150, 2, 40, true, 0}, first = {37, 70, 2, 40, true, 0};
	for (enum smalti_dtype dtype = SMALTI_F32; dtype <= SMALTI_BF16; dtype++) {
		struct attention_problem p = attention_problem(&shape, 1, dtype);
		struct attention_problem half = p;
		const int64_t values = first.queries * first.heads * first.head_dim;
		float *state = malloc((size_t)smalti_attention_state(37, 2, 40) * sizeof(float));
		half.shape = first;
		half.expected = calloc((size_t)values, sizeof(double));
		attention_expect(&half);
		attention_expect(&p);
		for (int i = 0; i <= (int)smalti_isa(); i++)
			for (int k = 0; k <= (int)smalti_isa(); k++)
				pass_on(&half, &p, i, k, state);
		free(half.expected);
		free(state);
		attention_free(&p);
	}
}

static void no_queries_write_nothing(void)
{
	const struct attention_shape shape = {0, 12, 2, 24, false, 0};
	float untouched = 7;
	for (enum smalti_dtype dtype = SMALTI_F32; dtype <= SMALTI_BF16; dtype++) {
		struct attention_problem p = attention_problem(&shape, 1, dtype);
		const struct smalti_keys keys = attention_keys(&p, 0, shape.keys);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			attention_call((enum smalti_isa)isa, &p.attention, p.operands[0], &keys, NULL,
				       &untouched);
			CHECK(untouched == 7, attention_name((enum smalti_isa)isa, &shape));
		}
		attention_free(&p);
	}
}

static void not_a_number_stays_in_its_row(void)
{
	const struct attention_shape shape = {20, 30, 1, 16, false, 0};
	const uint32_t payload = 0x7fc00001; /* which arithmetic on the exponent would turn into a number */
	for (enum smalti_dtype dtype = SMALTI_F32; dtype <= SMALTI_BF16; dtype++) {
		struct attention_problem p = attention_problem(&shape, 1, dtype);
		if (dtype)
			((uint16_t *)p.operands[0])[3 * p.stride] = 0xffff;
		else
			memcpy(&p.q[3 * p.stride], &payload, sizeof(payload));
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			attention_call_whole((enum smalti_isa)isa, &p);
			bool ok = true;
			for (int64_t i = 0; i < 20 * 16; i++)
				ok = ok && !isnan(p.y[i]) == (i / 16 != 3);
			CHECK(ok, attention_name((enum smalti_isa)isa, &shape));
		}
		attention_free(&p);
	}
}

/* What was too large for f16 shows, even where it makes all scores of a query -inf, or those of a key. */
static void infinity_is_no_mask(void)
{
	const struct attention_shape shape = {4, 6, 1, 8, false, 0};
	enum { QUERY, KEY };
	for (int which = QUERY; which <= KEY; which++) {
		struct attention_problem p = attention_problem(&shape, 1, SMALTI_F16);
		uint16_t *q = p.operands[0], *k = p.operands[1];
		for (int64_t i = 0; i < 4; i++)
			q[i * p.stride] = 0x3c00; /* 1 */
		for (int64_t i = 0; i < 6; i++)
			k[i * p.stride] = 0x3c00;
		*(which == QUERY ? q : k) = 0xfc00; /* -inf */
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			attention_call_whole((enum smalti_isa)isa, &p);
			bool ok = true;
			for (int64_t i = 0; i < 4 * 8; i++)
				ok = ok && !isnan(p.y[i]) == (which == QUERY && i >= 8);
			CHECK(ok, attention_name((enum smalti_isa)isa, &shape));
		}
		attention_free(&p);
	}
}

static void refuses_nonsense(void)
{
	const struct smalti_attention good = {4, 2,    2,    8,    16, 16, 16,  SMALTI_F32,
					      1, true, true, NULL, 0,  0,  NULL};
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
	cases[5].v_stride = 15;
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
	CU_ASSERT_EQUAL(smalti_attention_state(5, 2, 24), 2 * 5 * (24 + 2));
}

static const struct test tests[] = {
    {"agrees with double arithmetic, whole and in blocks", agrees_with_double},
    {"takes bf16 and f16", takes_16_bits},
    {"survives large scores", survives_large_scores},
    {"takes a negative scale", takes_a_negative_scale},
    {"no weight is subnormal", no_weight_is_subnormal},
    {"masked keys weigh nothing", masked_keys_weigh_nothing},
    {"no keys give zero", no_keys_give_zero},
    {"any instruction set goes on with a state", any_instruction_set_goes_on},
    {"no queries write nothing", no_queries_write_nothing},
    {"NaN stays in its row", not_a_number_stays_in_its_row},
    {"infinity of f16 is no mask", infinity_is_no_mask},
    {"refuses nonsense", refuses_nonsense},
};

TEST_MAIN("attention", tests)
