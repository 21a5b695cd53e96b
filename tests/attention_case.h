/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "kernels/attention.h"
#include "kernels/kernels.h"

/* Attentions of awkward shapes, their answers in double, and calls of every instruction set's kernel. */

struct attention_shape {
	int64_t queries, keys, heads, head_dim;
	bool bias;
	int64_t cut; /* keys of each block; 0: all in one */
};
enum { ATTENTION_SHAPES = 18 };
extern const struct attention_shape attention_shapes[ATTENTION_SHAPES];

/* The operands of a call, and the answer in double. */
struct attention_problem {
	struct attention_shape shape;
	struct smalti_attention attention;
	int64_t stride, bias_length;
	float *q, *k, *v, *bias, *y;
	void *operands[4]; /* q, k, v and y in the attention's dtype; the above if that is f32 */
	double *expected;
};

/* Makes random operands of about `spread` in size; attention_expect() computes `expected`. Free with
 * attention_free(). */
struct attention_problem attention_problem(const struct attention_shape *shape, float spread,
					   enum smalti_dtype dtype);
void attention_expect(struct attention_problem *p);
void attention_free(struct attention_problem *p);

/* Returns `count` keys from `first` on. */
struct smalti_keys attention_keys(const struct attention_problem *p, int64_t first, int64_t count);

/* Calls the kernel itself, with a scratch full of NaN. */
void attention_call(enum smalti_isa isa, const struct smalti_attention *a, const void *q,
		    const struct smalti_keys *blocks, float *state, void *y);
/* Widens the result of a call in operands[3] to the problem's y. */
void attention_widen(const struct attention_problem *p);
/* Compute the problem's y: all keys at once, or in blocks of `cut` keys, `max` of them in a call, as a graph
 * of bands does. */
void attention_call_whole(enum smalti_isa isa, const struct attention_problem *p);
void attention_call_in_blocks(enum smalti_isa isa, const struct attention_problem *p, int64_t cut,
			      int64_t max);

/* Names the case, in a static buffer. */
const char *attention_name(enum smalti_isa isa, const struct attention_shape *shape);
