/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "host/tile_memory.h"
#include "rt/session.h"
#include "rt/task_message.h"
#include "rt/task_times.h"
#include "rt/tile_forms.h"

#include <math.h>

#include <starpu.h>

/* Returns where a tile lies in main memory; NULL with an error if nowhere. */
static void *memory_of(const void *interface, struct smalti_error *error)
{
	struct smalti_formed *formed = smalti_formed_of(interface);
	if (formed)
		return (void *)(uintptr_t)smalti_formed_memory(formed, error);
	void *memory = (void *)STARPU_VECTOR_GET_PTR(interface);
	if (!smalti_tile_memory_is_placeholder(memory))
		return memory;
	smalti_tile_memory_fail(
	    (int64_t)STARPU_VECTOR_GET_NX(interface) * (int64_t)STARPU_VECTOR_GET_ELEMSIZE(interface), error);
	return NULL;
}

double smalti_task_predicted(const struct smalti_task_group *task_group)
{
	if (!task_group->compares)
		return (double)NAN;
	return smalti_task_times_measured(starpu_task_get_current(), starpu_worker_get_id());
}

/* Allocates the locals whose first step is this one. */
static int take_locals(const struct smalti_message *message, const struct smalti_executor *executor, int step,
		       void *slots[], struct smalti_error *error)
{
	const struct smalti_local *local = smalti_message_locals(message);
	for (int i = 0; i < message->locals; i++)
		if (local[i].first == step &&
		    !(slots[message->tiles + i] = executor->take(executor->user, local[i].bytes, error)))
			return -1;
	return 0;
}

/* Frees the locals whose last step is this one or before. */
static void give_locals(const struct smalti_message *message, const struct smalti_executor *executor,
			int step, void *slots[])
{
	const struct smalti_local *local = smalti_message_locals(message);
	for (int i = 0; i < message->locals; i++) {
		void **slot = &slots[message->tiles + i];
		if (*slot && local[i].last <= step) {
			executor->give(executor->user, *slot);
			*slot = NULL;
		}
	}
}

static int run_step(const struct smalti_step *step, const struct smalti_executor *executor,
		    void *const slots[], struct smalti_error *error)
{
	void *data[SMALTI_MAX_BUFFERS] = {NULL};
	const int buffers = smalti_op_buffers(smalti_step_op(step));
	for (int i = 0; i < buffers; i++)
		if (step->slot[i] != SMALTI_NO_SLOT)
			data[i] = slots[step->slot[i]];
	return executor->run(executor->user, step, data, error);
}

int smalti_task_run_steps(const struct smalti_message *message, const struct smalti_executor *executor,
			  void *slots[], struct smalti_error *error)
{
	int status = 0;
	for (int step = 0; step < message->steps && status == 0; step++) {
		status = take_locals(message, executor, step, slots, error);
		if (status == 0)
			status = run_step(&message->step[step], executor, slots, error);
		give_locals(message, executor, status == 0 ? step : SMALTI_TASK_STEPS, slots);
	}
	return status;
}

/* A CPU's executor: the pool of its locals, and its counter. */
struct cpu {
	struct smalti_pool *pool;
	struct smalti_op_counter *counter;
};

static void *take(void *user, int64_t bytes, struct smalti_error *error)
{
	const struct cpu *cpu = user;
	return smalti_tile_memory_acquire(cpu->pool, bytes, error);
}

static void give(void *user, void *memory)
{
	const struct cpu *cpu = user;
	smalti_tile_memory_release(cpu->pool, memory);
}

static int run(void *user, const struct smalti_step *step, void *const data[], struct smalti_error *error)
{
	const struct cpu *cpu = user;
	const double began = smalti_now();
	const int status = smalti_step_op(step)->run(data, step->arguments, error);
	smalti_op_counter_add(cpu->counter, step->op, step->arguments, smalti_now() - began);
	return status;
}

static int run_steps(const struct smalti_message *message, int worker, void *interfaces[],
		     struct smalti_error *error)
{
	const struct smalti_session *session = message->task_group->session;
	struct cpu cpu = {session->pool, smalti_op_counters_of(session->op_counters, worker)};
	const struct smalti_executor executor = {take, give, run, &cpu};
	void *slots[SMALTI_TASK_TILES] = {NULL};
	for (int i = 0; i < message->tiles; i++)
		if (!(slots[i] = memory_of(interfaces[i], error)))
			return -1;
	return smalti_task_run_steps(message, &executor, slots, error);
}

void smalti_task_run_cpu(void *interfaces[], void *argument)
{
	struct smalti_message *message = argument;
	struct smalti_task_group *task_group = message->task_group;
	if (smalti_task_group_failed(task_group))
		return;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = task_group->session;
	const int worker = starpu_worker_get_id();
	const bool slows = smalti_session_slows(session, worker);
	const double predicted = smalti_task_predicted(task_group), began = smalti_now();
	const double computed = slows ? smalti_thread_clock() : 0;
	if (run_steps(message, worker, interfaces, &error) < 0)
		smalti_task_group_fail(task_group, &error);
	if (slows)
		smalti_session_slow(session, worker, smalti_thread_clock() - computed);
	const double seconds = message->seconds = smalti_now() - began;
	smalti_session_add_busy(session, worker, seconds);
	smalti_task_group_task_took(task_group, seconds, predicted);
	smalti_task_group_task_did(task_group, message->position.stage, message->flops);
	message->did = true;
}
