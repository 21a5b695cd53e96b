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

/* The buffers of a step that are present: their indices, and which of them it writes. */
struct touches {
	int count;
	struct {
		int index;
		bool writes;
	} buffer[SMALTI_MAX_BUFFERS];
};

static struct touches touches_of(const struct smalti_step *step)
{
	const struct smalti_op *op = smalti_step_op(step);
	struct touches touches = {.count = 0};
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++) {
		const bool writes = smalti_op_access(op, kind, step->arguments) != SMALTI_READ;
		for (int i = 0; i < op->buffers[kind].count; i++, index++)
			if (step->slot[index] != SMALTI_NO_SLOT) {
				touches.buffer[touches.count].index = index;
				touches.buffer[touches.count++].writes = writes;
			}
	}
	return touches;
}

/* Returns the lane in which a step can begin first; of several the one that was busy last. */
static int choose(const double end[SMALTI_DEVICE_LANES], double ready)
{
	int best = 0;
	for (int lane = 1; lane < SMALTI_DEVICE_LANES; lane++) {
		const double begin = fmax(end[lane], ready), min = fmax(end[best], ready);
		if (begin < min || (begin <= min && end[lane] > end[best]))
			best = lane;
	}
	return best;
}

/* Chooses a step's lane; `end` has when each lane's last step ends. */
static int plan_step(const struct smalti_step *step, double end[SMALTI_DEVICE_LANES],
		     struct tile_times *times)
{
	const struct touches touches = touches_of(step);
	double ready = 0;
	for (int i = 0; i < touches.count; i++) {
		const struct tile_times *tile = &times[step->slot[touches.buffer[i].index]];
		ready = fmax(ready, touches.buffer[i].writes ? tile->touched : tile->written);
	}
	const int lane = choose(end, ready);
	end[lane] = fmax(end[lane], ready) + seconds_of(step);
	for (int i = 0; i < touches.count; i++) {
		struct tile_times *tile = &times[step->slot[touches.buffer[i].index]];
		tile->touched = fmax(tile->touched, end[lane]);
		if (touches.buffer[i].writes)
			tile->written = end[lane];
	}
	return lane;
}

/* Plans by tiles, not memories, which may differ from one run to the next: the lanes must not. */
static void plan(struct smalti_lanes *lanes, struct tile_times *times)
{
	double end[SMALTI_DEVICE_LANES] = {0};
	for (int i = 0; i < lanes->message->steps; i++)
		lanes->lane[i] = (int8_t)plan_step(&lanes->message->step[i], end, times);
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

static void follow(int *behind, int step)
{
	*behind = (int)smalti_max(*behind, step);
}

static void follow_touched(const struct touched *touched, bool writes, int behind[SMALTI_DEVICE_LANES])
{
	if (touched->writer >= 0)
		follow(&behind[touched->writer_lane], touched->writer);
	for (int lane = 0; writes && lane < SMALTI_DEVICE_LANES; lane++)
		follow(&behind[lane], touched->reader[lane]);
}

/* Follows all first: a step may have a memory in several buffers. */
void smalti_lanes_go_on(struct smalti_lanes *lanes, const void *const memories[],
			int behind[SMALTI_DEVICE_LANES])
{
	const struct touches touches = touches_of(&lanes->message->step[lanes->next]);
	const int lane = smalti_lanes_next(lanes);
	for (int i = 0; i < SMALTI_DEVICE_LANES; i++)
		behind[i] = i == lane ? lanes->last[i] : -1;
	for (int i = 0; i < touches.count; i++)
		follow_touched(find(lanes, memories[touches.buffer[i].index]), touches.buffer[i].writes,
			       behind);
	for (int i = 0; i < touches.count; i++) {
		struct touched *touched = find(lanes, memories[touches.buffer[i].index]);
		if (touches.buffer[i].writes)
			touched->writer = lanes->next, touched->writer_lane = lane;
		else
			touched->reader[lane] = lanes->next;
	}
	lanes->last[lane] = lanes->next++;
}
