/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "devices/device.h"
#include "rt/device_use.h"
#include "rt/lanes.h"
#include "rt/session.h"
#include "rt/task_message.h"
#include "rt/tile_forms.h"

#include <starpu.h>
#include <xxhash.h>

/* Returns where a tile lies in a device's memory. */
static struct smalti_device_memory device_memory_of(const void *interface)
{
	if (smalti_formed_of(interface))
		return smalti_formed_device_memory(interface);
	return (struct smalti_device_memory){(void *)STARPU_VECTOR_GET_DEV_HANDLE(interface),
					     (int64_t)STARPU_VECTOR_GET_NX(interface) *
						 (int64_t)STARPU_VECTOR_GET_ELEMSIZE(interface)};
}

/* A task, and the memories of its tiles. */
struct work {
	struct smalti_device *device;
	const struct smalti_message *message;
	struct smalti_lanes *lanes; /* NULL: steps run one after the other */
	struct smalti_device_memory memories[SMALTI_TASK_TILES];
};

static void *take(void *user, int64_t bytes, struct smalti_error *error)
{
	const struct work *work = user;
	if (work->lanes)
		smalti_device_set_lane(work->device, smalti_lanes_next(work->lanes));
	return (void *)(uintptr_t)smalti_device_take(work->device, bytes, error);
}

static void give(void *user, void *memory)
{
	const struct work *work = user;
	smalti_device_give(work->device, memory);
}

static void begin_step(const struct work *work, void *const data[])
{
	int behind[SMALTI_DEVICE_LANES];
	if (work->lanes) {
		smalti_device_set_lane(work->device, smalti_lanes_next(work->lanes));
		smalti_lanes_go_on(work->lanes, (const void *const *)data, behind);
		smalti_device_follow(work->device, behind);
	}
	smalti_device_begin_step(work->device);
}

static int run(void *user, const struct smalti_step *step, void *const data[], struct smalti_error *error)
{
	const struct work *work = user;
	begin_step(work, data);
	if (smalti_op_device(smalti_step_op(step))(
		work->device, (const struct smalti_device_memory *const *)data, step->arguments, error) == 0)
		return 0;
	smalti_error_prefix(error, "%s", smalti_step_op(step)->name);
	return -1;
}

static int run_steps(struct work *work, struct smalti_error *error)
{
	const struct smalti_executor executor = {take, give, run, work};
	void *slots[SMALTI_TASK_TILES] = {NULL};
	for (int i = 0; i < work->message->tiles; i++)
		slots[i] = &work->memories[i];
	return smalti_task_run_steps(work->message, &executor, slots, error);
}

/* Runs the steps in lanes, so that recorded commands may run beside each other. */
static int run_in_lanes(void *user, struct smalti_error *error)
{
	struct work *work = user;
	if (!(work->lanes = smalti_lanes_new(work->message, error)))
		return -1;
	const int status = run_steps(work, error);
	smalti_device_set_lane(work->device, 0);
	free(work->lanes);
	return status;
}

/* Extends the key by a step: two 32-bit hashes of its arguments make a key that is practically unique. */
static uint64_t add_step(uint64_t key, const struct smalti_step *step)
{
	const struct smalti_op *op = smalti_step_op(step);
	const uint64_t value = (uint64_t)op->value(step->arguments, 0) << 32 | op->value(step->arguments, 1);
	key = XXH64(&step->op, sizeof(step->op), key);
	key = XXH64(&value, sizeof(value), key);
	return XXH64(step->slot, (size_t)smalti_op_buffers(op) * sizeof(step->slot[0]), key);
}

/* Returns the key of what a device's commands for the task depend on. */
static uint64_t key_of(const struct work *work)
{
	const struct smalti_message *message = work->message;
	uint64_t key = 0;
	for (int i = 0; i < message->steps; i++)
		key = add_step(key, &message->step[i]);
	for (int i = 0; i < message->tiles; i++)
		key = XXH64(&work->memories[i], sizeof(work->memories[i]), key);
	return XXH64(smalti_message_locals(message), (size_t)message->locals * sizeof(struct smalti_local),
		     key);
}

/* Gives the device the task's commands. One operation has too few commands for recording. */
static int run_task(struct smalti_device *device, const struct smalti_message *message, void *interfaces[],
		    struct smalti_error *error)
{
	struct work work = {.device = device, .message = message};
	for (int i = 0; i < message->tiles; i++)
		work.memories[i] = device_memory_of(interfaces[i]);
	if (message->steps == 1 || !smalti_device_can_repeat(device))
		return run_steps(&work, error);
	return smalti_device_repeat(device, key_of(&work),
				    &(const struct smalti_device_work){run_in_lanes, &work}, error);
}

static void fail(struct smalti_task_group *task_group, int worker, struct smalti_error *error)
{
	char name[128];
	starpu_worker_get_name(worker, name, sizeof(name));
	smalti_error_prefix(error, "%s", name);
	smalti_task_group_fail(task_group, error);
}

/* Gives the device the task, which may still run when this returns. */
void smalti_task_run_device(void *interfaces[], void *argument)
{
	struct smalti_message *message = argument;
	struct smalti_task_group *task_group = message->task_group;
	if (smalti_task_group_failed(task_group) ||
	    smalti_lost_fails(task_group, starpu_worker_get_local_memory_node()))
		return;
	struct smalti_error error = SMALTI_NO_ERROR;
	message->predicted = smalti_task_predicted(task_group);
	message->began = smalti_now();
	struct smalti_session *session = task_group->session;
	smalti_meters_begins(session->meters, starpu_worker_get_local_memory_node());
	const int worker = starpu_worker_get_id();
	struct smalti_device *device = smalti_session_device(session, worker);
	const bool slows = smalti_session_slows(session, worker);
	if (run_task(device, message, interfaces, &error) < 0 ||
	    (slows && smalti_device_finish(device, &error) < 0))
		fail(task_group, worker, &error);
	if (slows)
		smalti_session_slow(session, worker, smalti_now() - message->began);
}
