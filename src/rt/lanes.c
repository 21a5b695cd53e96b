/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/lanes.h"

#include <math.h>
#include <xxhash.h>

/* The steps that touched a memory last. */
struct touched {
	const void *memory; /* NULL: the slot is free */
	int writer, writer_lane;
	int reader[SMALTI_DEVICE_LANES];
};

enum { PLACES = 4096 }; /* more than twice the memories of a task, in a hash table */

struct smalti_lanes {
	const struct smalti_message *message;
	int next, last[SMALTI_DEVICE_LANES];
	int8_t lane[SMALTI_TASK_STEPS];
	struct touched touched[PLACES];
};

/* The times of a tile while lanes are chosen: when the last step that writes it ends, and the last that
 * touches it. */
struct tile_times {
	double written, touched;
};

/* Returns the seconds of a step on paper, on a large device. Only their proportions matter. */
static double seconds_of(const struct smalti_step *step)
{
	static const double launch = 3e-6, flops = 4e14, bytes = 3e12;
	const struct smalti_op *op = smalti_step_op(step);
	return launch + op->flops(step->arguments) / flops + op->bytes(step->arguments) / bytes;
}

/* Calls a function for each buffer of a step that is present, with its index. */
typedef void each_buffer(void *user, int index, bool writes);
static void for_each_buffer(const struct smalti_step *step, each_buffer *call, void *user)
{
	const struct smalti_op *op = smalti_step_op(step);
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++) {
		const bool writes = smalti_op_access(op, kind, step->arguments) != SMALTI_READ;
		for (int i = 0; i < op->buffers[kind].count; i++, index++)
			if (step->slot[index] != SMALTI_NO_SLOT)
				call(user, index, writes);
	}
}

/* A step that gets a lane. */
struct planned {
	const struct smalti_step *step;
	struct tile_times *times;
	double ready, end;
};

static void await(void *user, int index, bool writes)
{
	struct planned *planned = user;
	const struct tile_times *times = &planned->times[planned->step->slot[index]];
	planned->ready = fmax(planned->ready, writes ? times->touched : times->written);
}

static void note_end(void *user, int index, bool writes)
{
	const struct planned *planned = user;
	struct tile_times *times = &planned->times[planned->step->slot[index]];
	times->touched = fmax(times->touched, planned->end);
	if (writes)
		times->written = planned->end;
}

/* Returns the lane in which a step can begin first; of several the one that was busy last. */
static int choose(const double end[SMALTI_DEVICE_LANES], double ready)
{
	int best = 0;
	for (int lane = 1; lane < SMALTI_DEVICE_LANES; lane++) {
		const double begin = fmax(end[lane], ready), least = fmax(end[best], ready);
		if (begin < least || (begin <= least && end[lane] > end[best]))
			best = lane;
	}
	return best;
}

/* Plans by tiles, not memories, which may differ from one run to the next: the lanes must not. */
static void plan(struct smalti_lanes *lanes, struct tile_times *times)
{
	double end[SMALTI_DEVICE_LANES] = {0};
	for (int i = 0; i < lanes->message->steps; i++) {
		struct planned planned = {&lanes->message->step[i], times, 0, 0};
		for_each_buffer(planned.step, await, &planned);
		const int lane = choose(end, planned.ready);
		planned.end = end[lane] = fmax(end[lane], planned.ready) + seconds_of(planned.step);
		for_each_buffer(planned.step, note_end, &planned);
		lanes->lane[i] = (int8_t)lane;
	}
}

struct smalti_lanes *smalti_lanes_new(const struct smalti_message *message, struct smalti_error *error)
{
	struct smalti_lanes *lanes = smalti_calloc(1, sizeof(*lanes), error);
	struct tile_times *times = smalti_calloc(message->tiles + message->locals + 1, sizeof(*times), error);
	if (!lanes || !times) {
		free(lanes);
		free(times);
		return NULL;
	}
	lanes->message = message;
	for (int lane = 0; lane < SMALTI_DEVICE_LANES; lane++)
		lanes->last[lane] = -1;
	plan(lanes, times);
	free(times);
	return lanes;
}

int smalti_lanes_next(const struct smalti_lanes *lanes)
{
	return lanes->lane[lanes->next];
}

/* Returns what is known of a memory; no step has touched a new one. */
static struct touched *find(struct smalti_lanes *lanes, const void *memory)
{
	size_t place = XXH64(&memory, sizeof(memory), 0) % PLACES;
	while (lanes->touched[place].memory && lanes->touched[place].memory != memory)
		place = (place + 1) % PLACES;
	struct touched *touched = &lanes->touched[place];
	if (touched->memory)
		return touched;
	*touched = (struct touched){.memory = memory, .writer = -1};
	for (int lane = 0; lane < SMALTI_DEVICE_LANES; lane++)
		touched->reader[lane] = -1;
	return touched;
}

/* The step that goes on. */
struct going {
	struct smalti_lanes *lanes;
	const void *const *memories;
	int *behind;
};

static void follow(int *behind, int step)
{
	*behind = (int)smalti_max(*behind, step);
}

static void follow_touched(void *user, int index, bool writes)
{
	const struct going *going = user;
	const struct touched *touched = find(going->lanes, going->memories[index]);
	if (touched->writer >= 0)
		follow(&going->behind[touched->writer_lane], touched->writer);
	for (int lane = 0; writes && lane < SMALTI_DEVICE_LANES; lane++)
		follow(&going->behind[lane], touched->reader[lane]);
}

static void note_touched(void *user, int index, bool writes)
{
	const struct going *going = user;
	const int step = going->lanes->next, lane = smalti_lanes_next(going->lanes);
	struct touched *touched = find(going->lanes, going->memories[index]);
	if (writes)
		touched->writer = step, touched->writer_lane = lane;
	else
		touched->reader[lane] = step;
}

void smalti_lanes_go_on(struct smalti_lanes *lanes, const void *const memories[],
			int behind[SMALTI_DEVICE_LANES])
{
	const struct smalti_step *step = &lanes->message->step[lanes->next];
	struct going going = {lanes, memories, behind};
	const int lane = smalti_lanes_next(lanes);
	for (int i = 0; i < SMALTI_DEVICE_LANES; i++)
		behind[i] = i == lane ? lanes->last[i] : -1;
	for_each_buffer(step, follow_touched, &going);
	for_each_buffer(step, note_touched, &going);
	lanes->last[lane] = lanes->next++;
}
