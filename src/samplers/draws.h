/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "samplers/noise.h"

/* The random numbers of training (docs/training.md). No stream has a state that outlives its use: each is a
 * function of the run's seed, a purpose and two numbers. */
enum smalti_stream_purpose {
	SMALTI_STREAM_SAMPLE = 1, /* epoch, index of the item */
	SMALTI_STREAM_INITIAL,    /* 0, place of the tensor in the bytewise order of names */
	SMALTI_STREAM_EVALUATION, /* timestep, place in the list of held-out items */
	SMALTI_STREAM_ORDER,      /* epoch, 0 */
	SMALTI_STREAM_RERANKING,  /* timestep, 0 */
};

/* Returns the seed of a torch generator. */
uint32_t smalti_stream_seed(uint64_t seed, enum smalti_stream_purpose purpose, uint64_t a, uint64_t b);

/* The first draws of a sample's stream; its noise comes next. */
struct smalti_sample_draws {
	int64_t timestep;
	float drop, caption; /* in [0, 1): decide whether the caption is dropped, and which caption it is */
};
enum { SMALTI_SAMPLE_DRAWS = 3 }; /* words of the stream that the draws take */

struct smalti_sample_draws smalti_draw_sample(uint32_t seed);

/* Draws torch.randperm(count), of at most 2³² / 20 numbers. */
void smalti_draw_order(uint32_t seed, int64_t count, int64_t *order);
