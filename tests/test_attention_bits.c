/* SPDX-License-Identifier: Apache-2.0
 *
 * What must not change a bit of an attention: how keys come in calls, blocks of whole spans, another run. */
#include "attention_case.h"
#include "harness.h"

#include <stdlib.h>
#include <string.h>

/* The same blocks in one call, in a call each, in calls of three. */
static void calls_change_no_bit(void)
{
	for (size_t i = 0; i < 3 * ATTENTION_SHAPES; i++) {
		const struct attention_shape *shape = &attention_shapes[i / 3];
		struct attention_problem p = attention_problem(shape, 1, (enum smalti_dtype)(i % 3));
		const size_t bytes =
		    (size_t)(shape->queries * shape->heads * shape->head_dim) * sizeof(float);
		float *before = malloc(bytes);
		for (int isa = 0; shape->cut && isa <= (int)smalti_isa(); isa++) {
			attention_call_in_blocks((enum smalti_isa)isa, &p, shape->cut, 128);
			memcpy(before, p.y, bytes);
			for (int64_t max = 1; max <= 3; max += 2) {
				attention_call_in_blocks((enum smalti_isa)isa, &p, shape->cut, max);
				CHECK(!memcmp(before, p.y, bytes),
				      attention_name((enum smalti_isa)isa, shape));
			}
		}
		free(before);
		attention_free(&p);
	}
}

/* Blocks of 128 keys and multiples of that. */
static void whole_spans_change_no_bit(void)
{
	const struct attention_shape shape = {37, 600, 2, 72, true, 0};
	const size_t bytes = (size_t)(shape.queries * shape.heads * shape.head_dim) * sizeof(float);
	float *before = malloc(bytes);
	for (enum smalti_dtype dtype = SMALTI_F32; dtype <= SMALTI_BF16; dtype++) {
		struct attention_problem p = attention_problem(&shape, 1, dtype);
		for (int isa = 0; isa <= (int)smalti_isa(); isa++) {
			attention_call_whole((enum smalti_isa)isa, &p);
			memcpy(before, p.y, bytes);
			for (int64_t cut = 128; cut <= 512; cut += 128) {
				attention_call_in_blocks((enum smalti_isa)isa, &p, cut, 2);
				CHECK(!memcmp(before, p.y, bytes),
				      attention_name((enum smalti_isa)isa, &shape));
			}
		}
		attention_free(&p);
	}
	free(before);
}

static void repeat(enum smalti_dtype dtype)
{
	const struct attention_shape shape = {50, 170, 2, 72, true, 64};
	const size_t bytes =
	    (size_t)(shape.queries * shape.heads * shape.head_dim * smalti_dtype_bytes(dtype));
	struct attention_problem p = attention_problem(&shape, 1, dtype);
	void *const *o = p.operands;
	const struct smalti_keys keys = attention_keys(&p, 0, shape.keys);
	void *before = malloc(bytes);
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int again = 0; again < 3; again++) {
		SUCCEEDS(smalti_attention(&p.attention, o[0], &keys, NULL, o[3], &error), &error,
			 "public call");
		CHECK(!again || !memcmp(before, o[3], bytes), "the same bits");
		memcpy(before, o[3], bytes);
	}
	attention_call(smalti_isa(), &p.attention, o[0], &keys, NULL, o[3]);
	CHECK(!memcmp(before, o[3], bytes), "the public function is this machine's kernel");
	free(before);
	attention_free(&p);
}

static void repeats_to_the_bit(void)
{
	repeat(SMALTI_F32);
	repeat(SMALTI_BF16);
	repeat(SMALTI_F16);
}

static const struct test tests[] = {
    {"calls change no bit", calls_change_no_bit},
    {"blocks of whole spans change no bit", whole_spans_change_no_bit},
    {"repeats to the bit", repeats_to_the_bit},
};

TEST_MAIN("attention bits", tests)
