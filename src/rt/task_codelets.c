/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/device_use.h"
#include "rt/devices_alone.h"
#include "rt/session.h"
#include "rt/task.h"
#include "rt/task_message.h"
#include "rt/task_times.h"

#include <starpu.h>

/* An op's StarPU codelet. */
struct smalti_codelet {
	struct starpu_codelet codelet;
	struct smalti_task_times times;
};

uint32_t smalti_task_key(const struct smalti_op *op, const void *arguments, uint32_t present)
{
	return op->key(arguments, starpu_hash_crc32c_be(present, 0));
}

static uint32_t step_key(const struct smalti_step *step)
{
	uint32_t present = 0;
	const struct smalti_op *op = smalti_step_op(step);
	const int buffers = smalti_op_buffers(op);
	for (int i = 0; i < buffers; i++)
		present |= step->slot[i] != SMALTI_NO_SLOT ? 1u << i : 0;
	return smalti_task_key(op, step->arguments, present);
}

uint32_t smalti_message_key(const struct smalti_message *message)
{
	uint32_t key = step_key(&message->step[0]);
	for (int step = 1; step < message->steps; step++) {
		key = starpu_hash_crc32c_be((uint32_t)message->step[step].op, key);
		key = starpu_hash_crc32c_be(step_key(&message->step[step]), key);
	}
	return key;
}

static uint32_t footprint(struct starpu_task *task)
{
	return smalti_message_key(task->cl_arg);
}

static int64_t bytes_of(const struct starpu_task *task)
{
	const struct smalti_message *message = task->cl_arg;
	int64_t bytes = 0;
	for (int i = 0; i < task->nbuffers; i++)
		bytes += (int64_t)starpu_data_get_size(STARPU_TASK_GET_HANDLE(task, i));
	return bytes + message->local_bytes;
}

bool smalti_task_fits(const struct starpu_task *task, unsigned memory_node)
{
	return bytes_of(task) <= smalti_device_shares(memory_node).task;
}

static int refuse(const struct starpu_task *task, int worker, int64_t bytes, int64_t max,
		  struct smalti_error *error)
{
	const struct smalti_message *message = task->cl_arg;
	char device[SMALTI_WORKER_NAME];
	smalti_session_worker_name(worker, device);
	return smalti_fail(error, SMALTI_ENOMEM,
			   "%s: '%s' of %s needs %" PRId64 " bytes in one task, but %" PRId64
			   " of its memory are for one: raise --gpu-memory-limit, make what is computed "
			   "smaller, or leave the device out",
			   device, task->name, message->task_group->name, bytes, max);
}

int smalti_task_check_size(const struct starpu_task *task, struct smalti_error *error)
{
	const struct smalti_message *message = task->cl_arg;
	const struct smalti_session *session = message->task_group->session;
	const int64_t bytes = bytes_of(task);
	int64_t max = -1;
	int roomiest = 0;
	if (task->where == STARPU_CPU || bytes <= session->task_bytes)
		return 0;
	for (int worker = 0; worker < session->workers; worker++) {
		const unsigned node = starpu_worker_get_memory_node((unsigned)worker);
		const int64_t room = session->devices[worker] ? smalti_device_shares(node).task : -1;
		if (room <= max)
			continue;
		max = room;
		roomiest = worker;
	}
	if (bytes <= max)
		return 0;
	smalti_meters_too_large(session->meters, task->name, bytes);
	return message->task_group->keeps_to_devices && smalti_devices_alone(session)
		   ? refuse(task, roomiest, bytes, max, error)
		   : 0;
}

static int can_execute(unsigned worker, struct starpu_task *task, unsigned implementation)
{
	(void)implementation;
	const struct smalti_message *message = task->cl_arg;
	const unsigned node = starpu_worker_get_memory_node(worker);
	return starpu_worker_get_type((int)worker) == STARPU_CPU_WORKER ||
	       (!smalti_lost_avoids(&message->task_group->session->lost, task, node) &&
		smalti_task_fits(task, node));
}

/* Has StarPU leave the last buffer where it is: a task only waits for it (smalti_task_group_behind()). A
 * codelet names it by its number, which is fixed only for an op that always has all of its buffers. */
static void leave_last(const struct smalti_op *op, struct starpu_codelet *codelet)
{
	int index = 0;
	for (; index < op->buffer_kinds; index++)
		if (op->buffers[index].optional || index + 1 >= STARPU_NMAXBUFS)
			return;
	codelet->specific_nodes = 1;
	codelet->nodes[index] = STARPU_SPECIFIC_NODE_NONE;
	while (index > 0)
		codelet->nodes[--index] = STARPU_SPECIFIC_NODE_LOCAL;
}

/* Makes the codelet of an op, or with NULL that of fused tasks. */
static void make_codelet(const struct smalti_op *op, bool devices, struct smalti_codelet *made)
{
	const char *name = op ? op->name : "fused";
	smalti_task_times_open(&made->times, name, footprint);
	starpu_codelet_init(&made->codelet);
	made->codelet.where = STARPU_CPU;
	made->codelet.cpu_funcs[0] = smalti_task_run_cpu;
	if (!op || smalti_op_device(op))
		smalti_devices_run(&made->codelet, smalti_task_run_device);
	made->codelet.can_execute = devices ? can_execute : NULL;
	made->codelet.nbuffers = STARPU_VARIABLE_NBUFFERS;
	made->codelet.name = name;
	if (op)
		leave_last(op, &made->codelet);
	made->codelet.model = &made->times.model;
}

/* Counts the codelets: one for each op, then that of fused tasks. */
static int codelet_count(void)
{
	return smalti_op_count + 1;
}

struct smalti_codelet *smalti_task_open(bool devices, struct smalti_error *error)
{
	struct smalti_codelet *codelets = smalti_calloc(codelet_count(), sizeof(*codelets), error);
	for (int i = 0; codelets && i < codelet_count(); i++)
		make_codelet(i < smalti_op_count ? &smalti_ops[i] : NULL, devices, &codelets[i]);
	return codelets;
}

/* Tells whether codelet `i` is one that takes most of a transformer's time: products, attention, and fused
 * tasks. */
static bool is_of_transformer(int i)
{
	return i == smalti_op_count || smalti_ops[i].work == SMALTI_PRODUCTS ||
	       smalti_ops[i].work == SMALTI_ATTENTION;
}

int smalti_task_list(const struct smalti_codelet *codelets, int worker, struct smalti_task_list *list,
		     struct smalti_error *error)
{
	int status = 0;
	for (int i = 0; i < codelet_count() && status == 0; i++)
		if (is_of_transformer(i))
			status = smalti_task_times_list(&codelets[i].times, (uint64_t)i, worker, list, error);
	return status;
}

void smalti_task_drop_measurements(struct smalti_codelet *codelets)
{
	for (int i = 0; i < codelet_count(); i++)
		codelets[i].times.history.type = STARPU_COMMON; /* has no file */
}

struct starpu_codelet *smalti_task_codelet(struct smalti_codelet *codelets,
					   const struct smalti_message *message)
{
	return &codelets[message->steps > 1 ? smalti_op_count : message->step[0].op].codelet;
}
