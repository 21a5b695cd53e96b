/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/task.h"

#include "base/alloc.h"
#include "base/clock.h"
#include "kernels/isa.h"
#include "rt/device.h"
#include "rt/places.h"
#include "rt/session.h"
#include "rt/tile_forms.h"
#include "rt/tile_memory.h"
#include "rt/trace.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>

/* The StarPU side of an op. */
struct smalti_codelet {
	struct starpu_codelet codelet;
	struct starpu_perfmodel model;
	char symbol[64]; /* of the model */
};

/* What a task brings along. It stays in this process: arguments hold functions that are called back. */
struct message {
	const struct smalti_op *op;
	struct smalti_task_group *task_group;
	struct smalti_position position;
	uint32_t present; /* bit i: buffer i was given */
	/* Of a device's task: when it was handed over, and how long it should take. */
	double began, predicted;
	_Alignas(16) unsigned char arguments[SMALTI_MAX_ARGUMENTS];
};

static int op_buffers(const struct smalti_op *op)
{
	int buffers = 0;
	for (int kind = 0; kind < op->buffer_kinds; kind++)
		buffers += op->buffers[kind].count;
	return buffers;
}

/* Where a tile lies in main memory; NULL with an error if nowhere. */
static void *memory_of(const void *interface, struct smalti_error *error)
{
	struct smalti_formed *formed = smalti_formed_of(interface);
	if (formed)
		return (void *)(uintptr_t)smalti_formed_memory(formed, error);
	void *memory = (void *)STARPU_VECTOR_GET_PTR(interface);
	if (!smalti_tile_memory_refused(memory))
		return memory;
	smalti_tile_memory_fail(
	    (int64_t)STARPU_VECTOR_GET_NX(interface) * (int64_t)STARPU_VECTOR_GET_ELEMSIZE(interface), error);
	return NULL;
}

static int find_data(const struct message *message, void *interfaces[], void *data[],
		     struct smalti_error *error)
{
	const int buffers = op_buffers(message->op);
	for (int i = 0, given = 0; i < buffers; i++)
		if (message->present >> i & 1 && !(data[i] = memory_of(interfaces[given++], error)))
			return -1;
	return 0;
}

/* What the performance model says of the task that is about to run on this worker; NAN: nothing. */
static double predicted_seconds(const struct smalti_task_group *task_group)
{
	struct starpu_task *task = starpu_task_get_current();
	if (!smalti_task_group_compares(task_group))
		return (double)NAN;
	struct starpu_perfmodel_arch *arch =
	    starpu_worker_get_perf_archtype(starpu_worker_get_id(), task->sched_ctx);
	return 1e-6 * starpu_task_expected_length(task, arch, 0);
}

/* Every codelet's CPU function: finds the op and its pointers, runs the kernel, keeps its error. */
void smalti_task_run_cpu(void *interfaces[], void *argument);
void smalti_task_run_cpu(void *interfaces[], void *argument)
{
	const struct message *message = argument;
	struct smalti_task_group *task_group = message->task_group;
	if (smalti_task_group_failed(task_group))
		return;
	void *data[SMALTI_MAX_BUFFERS] = {NULL};
	struct smalti_error error = SMALTI_NO_ERROR;
	const double predicted = predicted_seconds(task_group), began = smalti_now();
	if (find_data(message, interfaces, data, &error) < 0 ||
	    message->op->run(data, message->arguments, &error) < 0)
		smalti_task_group_fail(task_group, &error);
	const double seconds = smalti_now() - began;
	smalti_session_add_busy(smalti_task_group_session(task_group), starpu_worker_get_id(), seconds);
	smalti_task_group_task_took(task_group, seconds, predicted);
}

/* Where a tile lies in a device's memory. */
static struct smalti_device_memory device_memory_of(const void *interface)
{
	if (smalti_formed_of(interface))
		return smalti_formed_device_memory(interface);
	return (struct smalti_device_memory){(void *)STARPU_VECTOR_GET_DEV_HANDLE(interface),
					     (int64_t)STARPU_VECTOR_GET_NX(interface) *
						 (int64_t)STARPU_VECTOR_GET_ELEMSIZE(interface)};
}

static void find_memories(const struct message *message, void *interfaces[],
			  struct smalti_device_memory *memories, const struct smalti_device_memory **given)
{
	const int buffers = op_buffers(message->op);
	for (int i = 0, next = 0; i < buffers; i++) {
		if (!(message->present >> i & 1))
			continue;
		memories[i] = device_memory_of(interfaces[next++]);
		given[i] = &memories[i];
	}
}

/* Every codelet's OpenCL function: hands the work to the device, which goes on with it when this returns. */
void smalti_task_run_opencl(void *interfaces[], void *argument);
void smalti_task_run_opencl(void *interfaces[], void *argument)
{
	struct message *message = argument;
	struct smalti_task_group *task_group = message->task_group;
	if (smalti_task_group_failed(task_group))
		return;
	struct smalti_device_memory memories[SMALTI_MAX_BUFFERS];
	const struct smalti_device_memory *given[SMALTI_MAX_BUFFERS] = {NULL};
	struct smalti_error error = SMALTI_NO_ERROR;
	message->predicted = predicted_seconds(task_group);
	message->began = smalti_now();
	find_memories(message, interfaces, memories, given);
	struct smalti_device *device =
	    smalti_session_device(smalti_task_group_session(task_group), starpu_worker_get_id());
	if (smalti_op_device(message->op)(device, given, message->arguments, &error) < 0) {
		smalti_error_prefix(&error, "%s", message->op->name);
		smalti_task_group_fail(task_group, &error);
	}
}

uint32_t smalti_task_key(const struct smalti_op *op, const void *arguments, uint32_t present)
{
	return op->key(arguments, starpu_hash_crc32c_be(present, 0));
}

static uint32_t footprint(struct starpu_task *task)
{
	const struct message *message = task->cl_arg;
	return smalti_task_key(message->op, message->arguments, message->present);
}

/* Where the op can run. */
static uint32_t where(const struct smalti_op *op)
{
	return STARPU_CPU | (smalti_op_device(op) ? STARPU_OPENCL : 0);
}

/* Whether a device has room for the task's tiles, beside those of the next one, which come meanwhile, and
 * scratch: StarPU would ask for ever for memory that is not there. */
static int can_execute(unsigned worker, struct starpu_task *task, unsigned implementation)
{
	enum { SHARE = 4 };
	(void)implementation;
	if (starpu_worker_get_type((int)worker) == STARPU_CPU_WORKER)
		return 1;
	int64_t bytes = 0;
	for (int i = 0; i < task->nbuffers; i++)
		bytes += (int64_t)starpu_data_get_size(STARPU_TASK_GET_HANDLE(task, i));
	return bytes <= (int64_t)starpu_memory_get_total(starpu_worker_get_memory_node(worker)) / SHARE;
}

static void make_codelet(const struct smalti_op *op, bool devices, struct smalti_codelet *made)
{
	made->model.type = STARPU_HISTORY_BASED;
	made->model.footprint = footprint;
	made->model.symbol = made->symbol;
	snprintf(made->symbol, sizeof(made->symbol), "smalti_%s_%s", op->name, smalti_isa_name(smalti_isa()));
	starpu_codelet_init(&made->codelet);
	made->codelet.where = where(op);
	made->codelet.cpu_funcs[0] = smalti_task_run_cpu;
	made->codelet.cpu_funcs_name[0] = "smalti_task_run_cpu";
	made->codelet.opencl_funcs[0] = smalti_task_run_opencl;
	made->codelet.opencl_flags[0] = STARPU_OPENCL_ASYNC;
	made->codelet.can_execute = devices ? can_execute : NULL;
	made->codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
	made->codelet.name = op->name;
	made->codelet.model = &made->model;
}

struct smalti_codelet *smalti_task_open(bool devices, struct smalti_error *error)
{
	struct smalti_codelet *codelets = smalti_calloc(smalti_op_count, sizeof(*codelets), error);
	for (int op = 0; codelets && op < smalti_op_count; op++)
		make_codelet(&smalti_ops[op], devices, &codelets[op]);
	return codelets;
}

void smalti_task_drop_measurements(struct smalti_codelet *codelets)
{
	for (int op = 0; op < smalti_op_count; op++)
		codelets[op].model.type = STARPU_COMMON; /* a kind that has no file */
}

void smalti_task_close(struct smalti_codelet *codelets)
{
	free(codelets);
}

static void ended(void *argument)
{
	struct starpu_task *task = argument;
	const struct message *message = task->cl_arg;
	struct smalti_task_group *task_group = message->task_group;
	struct smalti_session *session = smalti_task_group_session(task_group);
	struct smalti_trace *trace = smalti_session_trace(session);
	if (message->began > 0)
		smalti_task_group_task_took(
		    task_group, smalti_session_device_ended(session, starpu_worker_get_id(), message->began),
		    message->predicted);
	if (trace)
		smalti_trace_task(trace, task, smalti_task_group_name(task_group), &message->position);
	smalti_task_group_task_ends(task_group, message->position.stage, task->flops);
	smalti_throttle_leave(smalti_session_throttle(session));
}

static enum starpu_data_access_mode mode_of(enum smalti_access access)
{
	static const enum starpu_data_access_mode modes[] = {STARPU_R, STARPU_W, STARPU_RW};
	return modes[access];
}

static int check_missing(const struct smalti_op *op, const struct smalti_buffer *buffer,
			 struct smalti_error *error)
{
	if (buffer->optional)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL, "%s: buffer '%s' is missing", op->name, buffer->name);
}

/* In arrays of the task's own, which StarPU frees: it may have been configured for tasks of 8 buffers. */
static int attach(struct starpu_task *task, struct message *message, struct smalti_tile *const *tiles,
		  struct smalti_error *error)
{
	const struct smalti_op *op = message->op;
	const int buffers = op_buffers(op);
	task->dyn_handles = smalti_calloc(buffers, sizeof(*task->dyn_handles), error);
	task->dyn_modes = smalti_calloc(buffers, sizeof(*task->dyn_modes), error);
	if (!task->dyn_handles || !task->dyn_modes)
		return -1;
	for (int kind = 0, index = 0; kind < op->buffer_kinds; kind++)
		for (int i = 0; i < op->buffers[kind].count; i++, index++) {
			if (!tiles[index]) {
				if (check_missing(op, &op->buffers[kind], error) < 0)
					return -1;
				continue;
			}
			task->dyn_handles[task->nbuffers] = smalti_tile_handle(tiles[index]);
			task->dyn_modes[task->nbuffers++] =
			    mode_of(smalti_op_access(op, kind, message->arguments));
			message->present |= 1u << index;
		}
	return 0;
}

static struct message *new_message(const struct smalti_op *op, struct smalti_task_group *task_group,
				   const void *arguments, struct smalti_error *error)
{
	struct message *message = smalti_calloc(1, sizeof(*message), error);
	if (!message)
		return NULL;
	message->op = op;
	message->task_group = task_group;
	memcpy(message->arguments, arguments, op->arguments_size);
	return message;
}

static int insert(struct smalti_task_group *task_group, const struct smalti_op *op,
		  struct smalti_tile *const *tiles, const void *arguments, struct smalti_error *error)
{
	struct message *message = new_message(op, task_group, arguments, error);
	if (!message)
		return -1;
	struct starpu_task *task = starpu_task_create();
	struct smalti_session *session = smalti_task_group_session(task_group);
	task->cl = &smalti_session_codelets(session)[op - smalti_ops].codelet;
	task->name = op->name;
	task->cl_arg = message;
	task->cl_arg_size = sizeof(*message);
	task->cl_arg_free = 1;
	task->nbuffers = 0;
	task->priority = smalti_session_priority(session, smalti_task_group_priority(task_group));
	task->flops = op->flops(arguments);
	task->callback_func = ended;
	task->callback_arg = task;
	smalti_places_choose(smalti_session_places(session), op, tiles, arguments, task);
	int status = attach(task, message, tiles, error);
	if (status == 0) {
		smalti_throttle_enter(smalti_session_throttle(session));
		message->position = smalti_task_group_task_begins(task_group, task->flops);
		status = starpu_task_submit(task);
		if (status == 0)
			return 0;
		smalti_throttle_leave(smalti_session_throttle(session));
		smalti_task_group_task_ends(task_group, message->position.stage, task->flops);
		smalti_fail(error, SMALTI_ENODEV, "no worker can run '%s': %s", op->name, strerror(-status));
	}
	task->destroy = 0;
	starpu_task_destroy(task);
	return -1;
}

/* Without StarPU. */
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

/* Of the task: the op, its arguments, and the numbers of its tiles, 0 for an absent one. */
static void record(struct smalti_session *session, const struct smalti_op *op,
		   struct smalti_tile *const *tiles, const void *arguments)
{
	int64_t numbers[1 + SMALTI_MAX_BUFFERS] = {op - smalti_ops};
	const int buffers = op_buffers(op);
	for (int i = 0; i < buffers; i++)
		numbers[1 + i] = tiles[i] ? smalti_tile_number(tiles[i]) : 0;
	smalti_session_record(session, op->value(arguments, 0), numbers, 1 + buffers);
}

void smalti_task_insert(struct smalti_task_group *task_group, const struct smalti_op *op,
			struct smalti_tile *const *tiles, const void *arguments)
{
	if (smalti_task_group_broken(task_group))
		return;
	struct smalti_session *session = smalti_task_group_session(task_group);
	struct smalti_error error = SMALTI_NO_ERROR;
	record(session, op, tiles, arguments);
	int status = smalti_session_plain(session) ? run_now(task_group, op, tiles, arguments, &error)
						   : insert(task_group, op, tiles, arguments, &error);
	if (status < 0)
		smalti_task_group_break(task_group, &error);
}
