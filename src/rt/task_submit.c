/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/ranks.h"
#include "rt/devices_alone.h"
#include "rt/places.h"
#include "rt/recording.h"
#include "rt/replay.h"
#include "rt/session.h"

#include <starpu.h>

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
		const struct smalti_tile_use *use = &r->use[i];
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

int smalti_recording_submit(struct smalti_task_group *task_group, struct smalti_recording *r,
			    const char *name, int place, struct smalti_error *error)
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
