/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/task.h"
#include "ranks/ranks.h"
#include "rt/counting.h"
#include "rt/devices_alone.h"
#include "rt/places.h"
#include "rt/recording.h"
#include "rt/session.h"

#include <xxhash.h>

/* Runs it without StarPU. */
static int run_now(struct smalti_task_group *task_group, const struct smalti_op *op,
		   struct smalti_tile *const *tiles, const void *arguments, struct smalti_error *error)
{
	void *data[SMALTI_MAX_BUFFERS] = {NULL};
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++) {
			if (!tiles[index] && smalti_op_check_missing(op, &op->buffers[kind], error) < 0)
				return -1;
			if (tiles[index] && !(data[index] = smalti_tile_memory(tiles[index], error)))
				return -1;
		}
	if (!smalti_task_group_failed(task_group) && op->run(data, arguments, error) < 0)
		smalti_task_group_fail(task_group, error);
	return 0;
}

/* Hashes a task: the op, its arguments, and the numbers of its tiles, 0 for an absent one. */
static void record(struct smalti_session *session, const struct smalti_op *op,
		   struct smalti_tile *const *tiles, const void *arguments)
{
	int64_t numbers[1 + SMALTI_MAX_BUFFERS] = {op - smalti_ops};
	const int buffers = smalti_op_buffers(op);
	for (int i = 0; i < buffers; i++)
		numbers[1 + i] = tiles[i] ? tiles[i]->number : 0;
	session->sequence = XXH64(numbers, (size_t)(1 + buffers) * sizeof(*numbers),
				  session->sequence + op->value(arguments, 0));
}

/* Inserts one operation as a task. */
static int insert_one(struct smalti_task_group *task_group, const struct smalti_op *op,
		      struct smalti_tile *const *tiles, const void *arguments, struct smalti_error *error)
{
	struct smalti_recording recording;
	recording.message = NULL;
	recording.behind = task_group->behind;
	recording.capacity = recording.tiles = 0;
	recording.bytes = 0;
	const int place = smalti_places_own(op, tiles, arguments, task_group->place);
	if (smalti_recording_add(&recording, op, tiles, arguments, error) == 0)
		return smalti_recording_submit(task_group, &recording, op->name, place, error);
	free(recording.message);
	return -1;
}

/* Submits the recorded task, and starts a new one. */
static int flush(struct smalti_task_group *task_group, struct smalti_recording *r, struct smalti_error *error)
{
	int status = 0;
	if (smalti_task_group_broken(task_group))
		free(r->message);
	else if (r->message)
		status = smalti_recording_submit(task_group, r, r->name, r->place, error);
	for (int i = 0; i < r->tiles; i++)
		smalti_tile_let_go(r->use[i].tile);
	r->message = NULL;
	r->capacity = r->tiles = 0;
	r->bytes = 0;
	r->place = SMALTI_ANYWHERE;
	return status;
}

/* Tells whether the task has no room for the operation, or a device would have no memory for both. */
static bool is_full(const struct smalti_session *session, const struct smalti_recording *r,
		    const struct smalti_op *op, struct smalti_tile *const *tiles)
{
	if (!r->message)
		return false;
	int64_t bytes = r->bytes;
	const int buffers = smalti_op_buffers(op);
	for (int i = 0; i < buffers; i++)
		if (tiles[i] && smalti_recording_number(r, tiles[i]) < 0)
			bytes += tiles[i]->rows * tiles[i]->row_bytes;
	return r->tiles + SMALTI_MAX_BUFFERS > SMALTI_TASK_TILES || r->message->steps == SMALTI_TASK_STEPS ||
	       (bytes > session->task_bytes && smalti_ranks_count() == 1);
}

static int record_one(struct smalti_task_group *task_group, const struct smalti_op *op,
		      struct smalti_tile *const *tiles, const void *arguments, struct smalti_error *error)
{
	struct smalti_recording *r = task_group->recording;
	const int place = smalti_places_own(op, tiles, arguments, task_group->place);
	const bool moves = place != SMALTI_ANYWHERE && r->place != SMALTI_ANYWHERE && place != r->place;
	if ((moves || is_full(task_group->session, r, op, tiles)) && flush(task_group, r, error) < 0)
		return -1;
	r->place = r->place == SMALTI_ANYWHERE ? place : r->place;
	r->behind = r->message ? r->behind : task_group->behind;
	const int before = r->tiles, status = smalti_recording_add(r, op, tiles, arguments, error);
	for (int i = before; i < r->tiles; i++)
		r->use[i].tile->held = true;
	return status;
}

/* Seconds of a CPU, by its speed on paper, in which a task's overhead is 1 % of its arithmetic. Where one
 * device does everything, smaller tasks only free memory earlier. */
static const double smallest_task = 4e-3, smallest_of_all = 0.25;

static bool is_wanted(const struct smalti_task_group *task_group, const struct smalti_fusion *fusion)
{
	const struct smalti_session *session = task_group->session;
	if (task_group->grain != SMALTI_GRAIN_AUTO)
		return task_group->grain >= fusion->grain;
	const double speed = smalti_ranks_count() > 1
				 ? smalti_ranks_speed(fusion->place)
				 : smalti_places_speed(session->places, session->speeds, fusion->place);
	const bool all = smalti_devices_alone_place(session) != SMALTI_ANYWHERE;
	return (all || fusion->grain < SMALTI_GRAIN_PASS) &&
	       fusion->flops < (all ? smallest_of_all : smallest_task) * speed;
}

void smalti_fuse_begin(struct smalti_task_group *task_group, const struct smalti_fusion *fusion)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (task_group->session->sequential || task_group->session->counting)
		return;
	if (task_group->recording) {
		task_group->recording->depth++;
		return;
	}
	if (!is_wanted(task_group, fusion))
		return;
	struct smalti_recording *recording = smalti_calloc(1, sizeof(*recording), &error);
	if (!recording)
		smalti_task_group_break(task_group, &error);
	else
		recording->name = fusion->name, recording->place = SMALTI_ANYWHERE;
	task_group->recording = recording;
}

void smalti_fuse_end(struct smalti_task_group *task_group)
{
	struct smalti_recording *recording = task_group->recording;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (recording && recording->depth-- > 0)
		return;
	if (recording && flush(task_group, recording, &error) < 0)
		smalti_task_group_break(task_group, &error);
	task_group->recording = NULL;
	free(recording);
}

static int insert(struct smalti_task_group *task_group, const struct smalti_op *op,
		  struct smalti_tile *const *tiles, const void *arguments, struct smalti_error *error)
{
	if (task_group->session->sequential)
		return run_now(task_group, op, tiles, arguments, error);
	if (task_group->recording)
		return record_one(task_group, op, tiles, arguments, error);
	return insert_one(task_group, op, tiles, arguments, error);
}

void smalti_task_insert(struct smalti_task_group *task_group, const struct smalti_op *op,
			struct smalti_tile *const *tiles, const void *arguments)
{
	if (smalti_task_group_broken(task_group))
		return;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (task_group->session->counting) {
		smalti_counting_insert(task_group, op, tiles, arguments);
		return;
	}
	record(task_group->session, op, tiles, arguments);
	if (insert(task_group, op, tiles, arguments, &error) < 0)
		smalti_task_group_break(task_group, &error);
}
