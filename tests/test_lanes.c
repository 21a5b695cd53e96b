/* SPDX-License-Identifier: Apache-2.0
 *
 * Which steps of a task may run beside each other: none before one that it waits for, and as many as can.
 */
#include "codelets/codelets.h"
#include "harness.h"
#include "rt/lanes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 200, TILES = 24, MEMORIES = 16 };

static struct smalti_message *new_message(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_message *message =
	    smalti_calloc(1, sizeof(*message) + STEPS * sizeof(message->step[0]), &error);
	if (!message)
		abort();
	message->tiles = TILES;
	return message;
}

/* Adds x to y, or copies it there. */
static void add_step(struct smalti_message *message, bool copies, int x, int y, int64_t count)
{
	struct smalti_step *step = &message->step[message->steps++];
	*step = (struct smalti_step){.op = copies ? SMALTI_OP_copy : SMALTI_OP_add,
				     .slot = {(int16_t)x, (int16_t)y}};
	if (copies)
		*(struct copy_arguments *)(void *)step->arguments =
		    (struct copy_arguments){.bytes = 4 * count};
	else
		*(struct add_arguments *)(void *)step->arguments = (struct add_arguments){.count = count};
}

/* A step, as the task's lanes have it: bit i: step i ends before it begins. */
struct placed {
	int lane;
	bool behind[STEPS];
};

/* Has the lanes of the message go on, where each tile lies in the memory that `memory` says. */
static void place_all(const struct smalti_message *message, const int memory[TILES], struct placed *placed)
{
	static const char memories[MEMORIES];
	struct smalti_error error = SMALTI_NO_ERROR;
	SCOPED(free) struct smalti_lanes *lanes = smalti_lanes_new(message, &error);
	if (!lanes)
		abort();
	for (int i = 0; i < message->steps; i++) {
		const int16_t *slot = message->step[i].slot;
		const void *data[] = {&memories[memory[slot[0]]], &memories[memory[slot[1]]]};
		int behind[SMALTI_DEVICE_LANES];
		placed[i] = (struct placed){.lane = smalti_lanes_next(lanes)};
		smalti_lanes_go_on(lanes, data, behind);
		for (int lane = 0; lane < SMALTI_DEVICE_LANES; lane++) {
			if (behind[lane] < 0)
				continue;
			CHECK(behind[lane] < i && placed[behind[lane]].lane == lane, "a step of that lane");
			placed[i].behind[behind[lane]] = true;
			for (int j = 0; j < behind[lane]; j++)
				placed[i].behind[j] |= placed[behind[lane]].behind[j];
		}
	}
}

static bool conflict(const struct smalti_step *a, const struct smalti_step *b, const int memory[TILES])
{
	const int ax = memory[a->slot[0]], ay = memory[a->slot[1]], bx = memory[b->slot[0]],
		  by = memory[b->slot[1]];
	return ay == bx || ay == by || ax == by;
}

/* Whatever shares a memory, of which one writes it, keeps its order; so do steps of one lane. */
static void keep_order(void)
{
	uint64_t state = 7;
	for (int round = 0; round < 50; round++) {
		SCOPED(free) struct smalti_message *message = new_message();
		SCOPED(free) struct placed *placed = calloc(STEPS, sizeof(*placed));
		int memory[TILES], beside = 0;
		if (!placed)
			abort();
		for (int i = 0; i < TILES; i++)
			memory[i] = i % (round < 25 ? TILES / 2 : MEMORIES);
		for (int i = 0; i < STEPS; i++) {
			const int x = (int)(test_random(&state) * 0.5F * TILES + 0.5F * TILES) % TILES;
			const int y = (x + 1 + (i * i + round) % (TILES - 1)) % TILES;
			add_step(message, i % 3 == 0, x, y, 1 << (i % 20));
		}
		place_all(message, memory, placed);
		for (int j = 0; j < STEPS; j++)
			for (int i = 0; i < j; i++) {
				const bool ordered = placed[j].behind[i];
				beside += !ordered;
				CHECK(ordered || (placed[i].lane != placed[j].lane &&
						  !conflict(&message->step[i], &message->step[j], memory)),
				      "in order");
			}
		CHECK(beside > 0, "some steps beside others");
	}
}

/* Two chains that share what they read run beside each other; one alone stays in a lane. */
static void chains(void)
{
	static const struct {
		const char *what;
		int chains, lanes;
	} cases[] = {{"one chain", 1, 1}, {"two chains", 2, 2}};
	int memory[TILES];
	for (int i = 0; i < TILES; i++)
		memory[i] = i % MEMORIES;
	for (int c = 0; c < COUNT(cases); c++) {
		SCOPED(free) struct smalti_message *message = new_message();
		SCOPED(free) struct placed *placed = calloc(STEPS, sizeof(*placed));
		bool used[SMALTI_DEVICE_LANES] = {false};
		int lanes = 0;
		if (!placed)
			abort();
		for (int i = 0; i < 20; i++)
			for (int chain = 0; chain < cases[c].chains; chain++)
				add_step(message, false, 0, 1 + chain, 1000);
		place_all(message, memory, placed);
		for (int i = 0; i < message->steps; i++)
			used[placed[i].lane] = true;
		for (int lane = 0; lane < SMALTI_DEVICE_LANES; lane++)
			lanes += used[lane];
		CHECK(lanes == cases[c].lanes, cases[c].what);
		for (int i = cases[c].chains; i < message->steps; i++)
			CHECK(placed[i].lane == placed[i - cases[c].chains].lane, cases[c].what);
	}
}

static const struct test tests[] = {
    {"order", keep_order},
    {"chains", chains},
};

TEST_MAIN("lanes", tests)
