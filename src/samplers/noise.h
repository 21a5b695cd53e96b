/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/dtype.h"

#include <stdbool.h>
#include <stdint.h>

#define SMALTI_MT19937_WORDS 624

/* Mersenne Twister of Matsumoto and Nishimura, 32-bit; the numbers of C++'s std::mt19937. Plain
 * data: a copy is an independent generator that continues the same stream. */
struct smalti_mt19937 {
	uint32_t state[SMALTI_MT19937_WORDS];
	uint32_t used; /* words of `state` that were given out; all of them: twist first */
};

void smalti_mt19937_seed(struct smalti_mt19937 *mt, uint32_t seed);
uint32_t smalti_mt19937_next(struct smalti_mt19937 *mt);

/* Normal noise with exactly the bits of torch.randn on a CPU generator (docs/reference.md 8.1), so that a
 * seed gives torch's image. Plain data without pointers: it can be in a task's buffer, and a copy forks the
 * stream. */
struct smalti_generator {
	struct smalti_mt19937 mt;
	bool has_second; /* `second` is not given out yet: draws of fewer than 16 values make pairs */
	double second;
};

/* Seeds as torch.Generator("cpu").manual_seed(seed): only the low 32 bits matter. */
void smalti_generator_seed(struct smalti_generator *generator, uint64_t seed);

/* Draws as one torch.rand of `count` elements of f32: in [0, 1). */
void smalti_rand(struct smalti_generator *generator, int64_t count, float *out);

/* Draws as one torch.randn of `count` >= 0 contiguous elements of `dtype`, widened to f32 (exactly). One call
 * is one torch call: where `count` is not a multiple of 16, the stream depends on its division into calls.
 * The noise of f16 and of bf16 is unrelated to the f32 noise of the same seed. The bits are the same on every
 * machine. */
void smalti_randn(struct smalti_generator *generator, enum smalti_dtype dtype, int64_t count, float *out);
