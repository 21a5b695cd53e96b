/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/task.h"
#include "ranks/ranks.h"
#include "rt/counting.h"
#include "rt/devices_alone.h"
#include "rt/places.h"
#include "rt/replay.h"
#include "rt/session.h"
#include "rt/task_message.h"

#include <starpu.h>
#include <xxhash.h>

static void ended(void *argument)
{
	struct starpu_task *task = argument;
	struct smalti_message *message = task->cl_arg;
	struct smalti_task_group *task_group = message->task_group;
	struct smalti_session *session = task_group->session;
	const int worker = starpu_worker_get_id();
	if (message->began > 0) {
		message->seconds = smalti_session_device_ended(session, worker, message->began);
		smalti_task_group_task_took(task_group, message->seconds, message->predicted);
		smalti_lost_fails(task_group, starpu_worker_get_local_memory_node());
	}
	smalti_observe(session, ended, task, worker);
	if (!message->did)
		smalti_task_group_task_did(task_group, message->position.stage, message->flops);
	smalti_task_group_task_ends(task_group);
	smalti_throttle_leave(&session->throttle);
}

static enum starpu_data_access_mode mode_of(enum smalti_access access)
{
	static const enum starpu_data_access_mode modes[] = {[SMALTI_READ] = STARPU_R,
							     [SMALTI_WRITE] = STARPU_W,
							     [SMALTI_UPDATE] = STARPU_RW,
							     [SMALTI_WAIT] = STARPU_R};
	return modes[access];
}

static int check_missing(const struct smalti_op *op, const struct smalti_buffer *buffer,
			 struct smalti_error *error)
{
	if (buffer->optional)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "%s: buffer '%s' is missing", op->name, buffer->name);
}

/* A task that is built while operations are added. */
struct smalti_recording {
	const char *name;
	int depth;                  /* of nested fusions */
	int place;                  /* of the first operation that has a place */
	struct smalti_tile *behind; /* what the first operation waits for; NULL: nothing */
	struct smalti_message *message;
	int capacity; /* of steps */
	int tiles;
	int64_t bytes; /* of the tiles */
	struct use {
		struct smalti_tile *tile;
		enum smalti_access access; /* merged over all steps */
		int first, last;           /* steps */
	} use[SMALTI_TASK_TILES];
};

static int make_room(struct smalti_recording *r, struct smalti_error *error)
{
	if (r->message && r->message->steps < r->capacity)
		return 0;
	const int capacity = r->capacity ? 4 * r->capacity : 1;
	struct smalti_message *message =
	    realloc(r->message, sizeof(*message) + (size_t)capacity * sizeof(message->step[0]));
	if (!message)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a task");
	if (!r->message)
		*message = (struct smalti_message){.steps = 0};
	r->message = message;
	r->capacity = capacity;
	return 0;
}

/* Returns the number of a tile that the task uses already, else -1. */
static int number_of(const struct smalti_recording *r, const struct smalti_tile *tile)
{
	const int number = tile->number_in_task;
	return number < r->tiles && r->use[number].tile == tile ? number : -1;
}

/* Adds an access; returns the tile's number. */
static int use_tile(struct smalti_recording *r, struct smalti_tile *tile, enum smalti_access access)
{
	const int step = r->message->steps, known = number_of(r, tile);
	if (known >= 0) {
		r->use[known].last = step;
		if (access != r->use[known].access && r->use[known].access == SMALTI_READ)
			r->use[known].access = SMALTI_UPDATE;
		return known;
	}
	r->use[r->tiles] = (struct use){tile, access, step, step};
	r->bytes += tile->rows * tile->row_bytes;
	tile->number_in_task = r->tiles;
	return r->tiles++;
}

static int add_step(struct smalti_recording *r, const struct smalti_op *op, struct smalti_tile *const *tiles,
		    const void *arguments, struct smalti_error *error)
{
	if (make_room(r, error) < 0)
		return -1;
	struct smalti_step *step = &r->message->step[r->message->steps];
	step->op = (int)(op - smalti_ops);
	memcpy(step->arguments, arguments, op->arguments_size);
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++) {
			step->slot[index] = SMALTI_NO_SLOT;
			if (tiles[index])
				step->slot[index] =
				    (int16_t)use_tile(r, tiles[index], smalti_op_access(op, kind, arguments));
			else if (check_missing(op, &op->buffers[kind], error) < 0)
				return -1;
		}
	r->message->steps++;
	return 0;
}

/* Makes room for the locals. */
static int add_locals(struct smalti_recording *r, struct smalti_error *error)
{
	for (int i = 0; i < r->tiles; i++)
		r->message->locals += smalti_tile_is_local(r->use[i].tile);
	struct smalti_message *message = realloc(r->message, smalti_message_bytes(r->message));
	if (!message)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a task");
	r->message = message;
	message->tiles = r->tiles - message->locals;
	return 0;
}

/* Allocates the task's own arrays, which StarPU frees: StarPU may be configured for only 8 buffers per
 * task. */
static int take_arrays(struct starpu_task *task, const struct smalti_recording *r, struct smalti_error *error)
{
	task->dyn_handles = smalti_calloc(r->tiles + 1, sizeof(*task->dyn_handles), error);
	task->dyn_modes = smalti_calloc(r->tiles + 1, sizeof(*task->dyn_modes), error);
	return task->dyn_handles && task->dyn_modes ? 0 : -1;
}

static void renumber(struct smalti_message *message, const int16_t *number)
{
	for (int step = 0; step < message->steps; step++) {
		const int buffers = smalti_op_buffers(smalti_step_op(&message->step[step]));
		for (int i = 0; i < buffers; i++)
			if (message->step[step].slot[i] != SMALTI_NO_SLOT)
				message->step[step].slot[i] = number[message->step[step].slot[i]];
	}
}

/* Adds a buffer to StarPU's task. */
static void add_buffer(struct starpu_task *task, struct smalti_tile *tile, enum smalti_access access,
		       const struct smalti_session *session)
{
	task->dyn_handles[task->nbuffers] = smalti_tile_handle(tile);
	task->dyn_modes[task->nbuffers++] = mode_of(access);
	smalti_observe(session, uses, tile, access);
}

/* Returns the bytes of a device for the locals: one that has ended leaves its memory to the next of its
 * size. */
static int64_t bytes_of_locals(const struct smalti_message *message)
{
	const struct smalti_local *local = smalti_message_locals(message);
	bool left[SMALTI_TASK_TILES] = {false}; /* it left its memory to another */
	int64_t bytes = 0;
	for (int i = 0; i < message->locals; i++) {
		int from = 0;
		while (from < i && (left[from] || local[from].bytes != local[i].bytes ||
				    local[from].last >= local[i].first))
			from++;
		left[from] = from < i;
		bytes += from < i ? 0 : local[i].bytes;
	}
	return bytes;
}

/* Numbers StarPU's buffers first, then the locals; a tile that the task only waits for has no number. */
static int attach(struct starpu_task *task, struct smalti_recording *r, struct smalti_error *error)
{
	struct smalti_message *message = r->message;
	const struct smalti_session *session = message->task_group->session;
	int16_t number[SMALTI_TASK_TILES];
	if (take_arrays(task, r, error) < 0)
		return -1;
	for (int i = 0, local = 0; i < r->tiles; i++) {
		const struct use *use = &r->use[i];
		if (smalti_tile_is_local(use->tile)) {
			number[i] = (int16_t)(message->tiles + local);
			smalti_message_locals(message)[local++] = (struct smalti_local){
			    use->tile->rows * use->tile->row_bytes, use->first, use->last};
			continue;
		}
		number[i] = (int16_t)task->nbuffers;
		add_buffer(task, use->tile, use->access, session);
	}
	if (session->device_counts.sum > 0)
		message->local_bytes = bytes_of_locals(message);
	if (r->behind)
		add_buffer(task, r->behind, SMALTI_WAIT, session);
	renumber(message, number);
	return 0;
}

static double flops_of(const struct smalti_message *message)
{
	double flops = 0;
	for (int step = 0; step < message->steps; step++)
		flops += smalti_step_op(&message->step[step])->flops(message->step[step].arguments);
	return flops;
}

static struct starpu_task *new_task(const struct smalti_task_group *task_group, const char *name,
				    struct smalti_message *message)
{
	struct smalti_session *session = task_group->session;
	struct starpu_task *task = starpu_task_create();
	task->cl = smalti_task_codelet(session->codelets, message);
	task->name = message->steps > 1 ? name : smalti_step_op(message->step)->name;
	task->cl_arg = message;
	task->cl_arg_size = smalti_message_bytes(message);
	task->cl_arg_free = task->cl_ret_free = 1;
	task->nbuffers = 0;
	task->priority = smalti_session_priority(session, smalti_task_group_priority(task_group));
	bool on_devices = true;
	for (int step = 0; step < message->steps; step++)
		on_devices = on_devices && smalti_op_device(smalti_step_op(&message->step[step]));
	task->flops = flops_of(message);
	task->where = on_devices ? task->cl->where : STARPU_CPU;
	task->callback_func = ended;
	task->callback_arg = task;
	return task;
}

/* Tells whether the task only makes a weight anywhere, so that it has no place: the first reader makes it. */
static bool reads_weights_alone(const struct smalti_recording *r)
{
	for (int i = 0; i < r->tiles; i++)
		if (!r->use[i].tile->formed || r->use[i].access != SMALTI_READ)
			return false;
	return true;
}

/* Brings the tiles to the rank that executes the task; tells whether that is this one. */
static bool is_ours(struct smalti_task_group *task_group, const struct smalti_recording *r, int place)
{
	const int rank = smalti_ranks_of(place);
	if (place == SMALTI_ANYWHERE && reads_weights_alone(r))
		return false;
	const int priority =
	    smalti_session_priority(task_group->session, smalti_task_group_priority(task_group));
	for (int i = 0; i < r->tiles; i++)
		if (!smalti_tile_is_local(r->use[i].tile)) {
			smalti_task_transfers_count(task_group, r->use[i].tile, r->use[i].access, rank);
			smalti_tile_bring(r->use[i].tile, r->use[i].access, rank, priority);
		}
	return rank == smalti_ranks_own();
}

/* Prefetches for one process's task. One that no device can run is in main memory; excess owners share the
 * places. Tiles come as soon as they are written, whatever else the task waits for. */
static void bring(struct smalti_task_group *task_group, const struct smalti_recording *r,
		  const struct starpu_task *task, int place)
{
	const struct smalti_session *session = task_group->session;
	const int places = smalti_session_place_count(session);
	const int at = task->where == STARPU_CPU  ? 0
		       : place == SMALTI_ANYWHERE ? SMALTI_ANYWHERE
						  : place % places;
	if (smalti_ranks_count() > 1 || places == 1)
		return;
	for (int i = 0; i < r->tiles; i++) {
		struct smalti_tile *tile = r->use[i].tile;
		if (session->replay && at > 0)
			smalti_tile_prefetch_idle(tile, at, smalti_places_node(session->places, at),
						  smalti_replay_urgency(session->replay));
		if (smalti_tile_is_local(tile) ||
		    !smalti_task_transfers_count(task_group, tile, r->use[i].access, at))
			continue;
		smalti_observe(session, receives, tile);
		smalti_tile_prefetch(tile, smalti_places_node(session->places, at), task->priority);
	}
}

/* Submits the task, and takes its message. */
static int submit(struct smalti_task_group *task_group, struct smalti_recording *r, const char *name,
		  int place, struct smalti_error *error)
{
	struct smalti_throttle *throttle = &task_group->session->throttle;
	if (smalti_ranks_count() > 1 && !is_ours(task_group, r, place)) {
		smalti_task_group_task_elsewhere(task_group, flops_of(r->message));
		free(r->message);
		return 0;
	}
	if (add_locals(r, error) < 0) {
		free(r->message);
		return -1;
	}
	struct smalti_message *message = r->message;
	struct starpu_task *task = new_task(task_group, name, message);
	message->task_group = task_group;
	message->flops = task->flops;
	int status = attach(task, r, error);
	if (status == 0)
		status = smalti_task_check_size(task, error);
	if (status == 0) {
		place = smalti_replay_place(task_group->session->replay, place);
		bring(task_group, r, task, place);
		smalti_places_restrict(task_group->session, place, task);
		smalti_devices_alone_restrict(task_group->session, task);
		smalti_lost_prepare(&task_group->session->lost, task);
		smalti_throttle_enter(throttle);
		smalti_observe(task_group->session, inserts, task);
		message->position = smalti_task_group_task_begins(task_group, task->flops);
		status = starpu_task_submit(task);
		if (status == 0)
			return 0;
		smalti_throttle_leave(throttle);
		smalti_task_group_task_did(task_group, message->position.stage, task->flops);
		smalti_task_group_task_ends(task_group);
		smalti_fail(error, SMALTI_ENODEV, "no worker can run '%s': %s", task->name,
			    strerror(-status));
	}
	task->destroy = 0;
	starpu_task_destroy(task);
	return -1;
}

/* Runs it without StarPU. */
static int run_now(struct smalti_task_group *task_group, const struct smalti_op *op,
		   struct smalti_tile *const *tiles, const void *arguments, struct smalti_error *error)
{
	void *data[SMALTI_MAX_BUFFERS] = {NULL};
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++) {
			if (!tiles[index] && check_missing(op, &op->buffers[kind], error) < 0)
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
	if (add_step(&recording, op, tiles, arguments, error) == 0)
		return submit(task_group, &recording, op->name, place, error);
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
		status = submit(task_group, r, r->name, r->place, error);
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
		if (tiles[i] && number_of(r, tiles[i]) < 0)
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
	const int before = r->tiles, status = add_step(r, op, tiles, arguments, error);
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
