/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "smalti/session.h"

#include <stdint.h>

/* A tiling decides the bits; another tiling changes only rounding. The judge keeps the first result of every
 * tiling of every stage and size, and compares later results with it. */

enum { JUDGE_DIT, JUDGE_DECODER, JUDGE_ENCODER, JUDGE_DIFFUSION /* and the number of the sampler */ };

struct judge_result {
	int stage;
	int64_t height, width, tile;
	int64_t count;
	float *values; /* from judge_array() */
};

/* The workers that run a plan. */
struct judge_schedule {
	const char *policy; /* NULL: without StarPU */
	int64_t workers;
};
struct smalti_session *judge_session(const struct judge_schedule *schedule);
/* Returns a name for messages, in a static buffer. */
const char *judge_schedule_name(const struct judge_schedule *schedule);

/* Judges a result, whose values it takes. */
void judge(const struct judge_result *found, const char *schedule);
void judge_forget(void);

float *judge_array(int64_t count);
float *judge_filled(int64_t count, double a, double b); /* test_fill() */

int64_t judge_draw(uint64_t *state, const int64_t *choices, int count);
/* Draws a tile, at most the extent: then equal numbers are equal tilings. */
int64_t judge_draw_tile(uint64_t *state, const int64_t *choices, int count, int64_t extent,
			int64_t max_tiles);
