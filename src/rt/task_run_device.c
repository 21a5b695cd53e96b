/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "rt/device.h"
#include "rt/session.h"
#include "rt/task_message.h"
#include "rt/tile_forms.h"

#include <starpu.h>

/* Where a tile lies in a device's memory. */
static struct smalti_device_memory device_memory_of(const void *interface)
{
	if (smalti_formed_of(interface))
		return smalti_formed_device_memory(interface);
	return (struct smalti_device_memory){(void *)STARPU_VECTOR_GET_DEV_HANDLE(interface),
					     (int64_t)STARPU_VECTOR_GET_NX(interface) *
						 (int64_t)STARPU_VECTOR_GET_ELEMSIZE(interface)};
}

typedef const struct smalti_device_memory *device_slot;

static int take_device_locals(struct smalti_device *device, const struct smalti_message *message, int step,
			      device_slot slots[], struct smalti_error *error)
{
	for (int i = 0; i < message->locals; i++)
		if (message->local[i].first == step &&
		    !(slots[message->tiles + i] = smalti_device_take(device, message->local[i].bytes, error)))
			return -1;
	return 0;
}

static void give_device_locals(struct smalti_device *device, const struct smalti_message *message, int step,
			       device_slot slots[])
{
	for (int i = 0; i < message->locals; i++) {
		device_slot *slot = &slots[message->tiles + i];
		if (*slot && message->local[i].last <= step) {
			smalti_device_give(device, *slot);
			*slot = NULL;
		}
	}
}

static int run_device_step(struct smalti_device *device, const struct smalti_step *step,
			   const device_slot slots[], struct smalti_error *error)
{
	device_slot given[SMALTI_MAX_BUFFERS] = {NULL};
	const int buffers = smalti_op_buffers(step->op);
	for (int i = 0; i < buffers; i++)
		if (step->slot[i] != SMALTI_NO_SLOT)
			given[i] = slots[step->slot[i]];
	if (smalti_op_device(step->op)(device, given, step->arguments, error) == 0)
		return 0;
	smalti_error_prefix(error, "%s", step->op->name);
	return -1;
}

static int run_device_steps(struct smalti_device *device, const struct smalti_message *message,
			    void *interfaces[], struct smalti_error *error)
{
	struct smalti_device_memory memories[SMALTI_TASK_TILES];
	device_slot slots[SMALTI_TASK_TILES] = {NULL};
	int status = 0;
	for (int i = 0; i < message->tiles; i++) {
		memories[i] = device_memory_of(interfaces[i]);
		slots[i] = &memories[i];
	}
	for (int step = 0; step < message->steps && status == 0; step++) {
		status = take_device_locals(device, message, step, slots, error);
		if (status == 0)
			status = run_device_step(device, &message->step[step], slots, error);
		give_device_locals(device, message, status == 0 ? step : SMALTI_TASK_STEPS, slots);
	}
	return status;
}

/* Hands the work to the device, which goes on with it when this returns. */
void smalti_task_run_opencl(void *interfaces[], void *argument)
{
	struct smalti_message *message = argument;
	struct smalti_task_group *task_group = message->task_group;
	if (smalti_task_group_failed(task_group))
		return;
	struct smalti_error error = SMALTI_NO_ERROR;
	message->predicted = smalti_task_predicted(task_group);
	message->began = smalti_now();
	struct smalti_device *device =
	    smalti_session_device(smalti_task_group_session(task_group), starpu_worker_get_id());
	if (run_device_steps(device, message, interfaces, &error) < 0)
		smalti_task_group_fail(task_group, &error);
}
