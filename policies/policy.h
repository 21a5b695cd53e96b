/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The contract of a scheduling policy with StarPU, and with the programs whose tasks it gets. A policy is a
 * library that defines starpu_get_sched_lib_policy(); any StarPU program loads it:
 *
 *     STARPU_SCHED_LIB=/path/to/NAME.so STARPU_SCHED=NAME program
 *
 * StarPU calls
 *   init_sched      first; the state is the policy's own, kept by starpu_sched_ctx_set_policy_data()
 *   add_workers     with all workers
 *   push_task       with each task when all that it waits for has ended, on any thread
 *   pop_task        on a worker that wants a task; NULL: it gets none, and asks again once it is woken
 *   pre_exec_hook   on the worker, when the task's data is there and it begins
 *   post_exec_hook  on the worker, when it has ended
 *   remove_workers, deinit_sched   in the end
 *
 * and promises that a task exists from its push until its post_exec_hook is over. In return
 *   - each pushed task is popped once, by a worker with starpu_worker_can_execute_task();
 *   - push_task calls starpu_push_task_end() before any worker can pop the task, and then wakes a worker;
 *   - policy_lock() takes each lock that workers share: StarPU holds the worker's own lock while it pops.
 *
 * A task has a priority (higher first; Smalti's: earlier requests first, and in one request the task with the
 * longest path behind it), a length by starpu_task_worker_expected_length() (NAN: not known yet), and
 * buffers. */

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <starpu.h>
#include <starpu_scheduler.h>

/* Returns the policy; nothing else is visible. */
__attribute__((visibility("default"))) struct starpu_sched_policy *
starpu_get_sched_lib_policy(const char *name);

/* Stores the policy's own state, from init_sched on; tasks may have any priority. */
static inline void policy_open(unsigned context, void *state)
{
	starpu_sched_ctx_set_policy_data(context, state);
	starpu_sched_ctx_set_min_priority(context, INT_MIN);
	starpu_sched_ctx_set_max_priority(context, INT_MAX);
}

static inline void *policy_state(unsigned context)
{
	return starpu_sched_ctx_get_policy_data(context);
}

static inline void policy_lock(starpu_pthread_mutex_t *mutex)
{
	starpu_worker_relax_on();
	STARPU_PTHREAD_MUTEX_LOCK(mutex);
	starpu_worker_relax_off();
}

static inline void policy_unlock(starpu_pthread_mutex_t *mutex)
{
	STARPU_PTHREAD_MUTEX_UNLOCK(mutex);
}

/* Inserts the task behind those of its priority. */
static inline void policy_insert(struct starpu_task_list *list, struct starpu_task *task)
{
	struct starpu_task_list later;
	starpu_task_list_init(&later);
	while (!starpu_task_list_empty(list) && starpu_task_list_back(list)->priority < task->priority)
		starpu_task_list_push_front(&later, starpu_task_list_pop_back(list));
	starpu_task_list_push_back(list, task);
	while (!starpu_task_list_empty(&later))
		starpu_task_list_push_back(list, starpu_task_list_pop_front(&later));
}

/* Tells whether the data is in this memory, not just under way to it. */
static inline int policy_is_valid(starpu_data_handle_t handle, unsigned node)
{
	int valid;
	starpu_data_query_status(handle, (int)node, NULL, &valid, NULL);
	return valid;
}

/* Tells whether the task only waits for this buffer's writers, and leaves it in place. */
static inline int policy_stays(struct starpu_task *task, unsigned buffer)
{
	return task->cl && task->cl->specific_nodes &&
	       STARPU_CODELET_GET_NODE(task->cl, buffer) == STARPU_SPECIFIC_NODE_NONE;
}

/* Where a task's data is. A buffer that it does not read, or that stays, is there. */
enum policy_whereabouts { POLICY_THERE, POLICY_UNDER_WAY, POLICY_ELSEWHERE };
static inline enum policy_whereabouts policy_where(struct starpu_task *task, unsigned buffer, unsigned node)
{
	const starpu_data_handle_t handle = STARPU_TASK_GET_HANDLE(task, buffer);
	if (!(STARPU_TASK_GET_MODE(task, buffer) & STARPU_R) || policy_stays(task, buffer) ||
	    policy_is_valid(handle, node))
		return POLICY_THERE;
	return starpu_data_is_on_node(handle, node) ? POLICY_UNDER_WAY : POLICY_ELSEWHERE;
}

/* Returns the bytes still to be sent to the memory. */
static inline size_t policy_missing(struct starpu_task *task, unsigned node)
{
	size_t bytes = 0;
	for (unsigned i = 0; i < STARPU_TASK_GET_NBUFFERS(task); i++)
		if (policy_where(task, i, node) == POLICY_ELSEWHERE)
			bytes += starpu_data_get_size(STARPU_TASK_GET_HANDLE(task, i));
	return bytes;
}

/* Returns a task's microseconds on a worker that can execute it; 0: not known. */
static inline double policy_length(struct starpu_task *task, unsigned worker, unsigned implementation)
{
	const double length =
	    starpu_task_worker_expected_length(task, worker, task->sched_ctx, implementation);
	return isnan(length) ? 0 : length;
}
