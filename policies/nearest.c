/* SPDX-License-Identifier: Apache-2.0 */
/* The policy "nearest", an example. All workers share one queue by priority. Of the tasks with the highest
 * priority, a worker takes the one with the fewest bytes to move to its memory. */
#include "policy.h"

struct state {
	starpu_pthread_mutex_t mutex;
	struct starpu_task_list ready;
};

static void init(unsigned context)
{
	struct state *state = calloc(1, sizeof(*state));
	STARPU_PTHREAD_MUTEX_INIT(&state->mutex, NULL);
	starpu_task_list_init(&state->ready);
	policy_open(context, state);
}

static void deinit(unsigned context)
{
	struct state *state = policy_state(context);
	STARPU_PTHREAD_MUTEX_DESTROY(&state->mutex);
	free(state);
}

static int push(struct starpu_task *task)
{
	struct state *state = policy_state(task->sched_ctx);
	policy_lock(&state->mutex);
	policy_insert(&state->ready, task);
	starpu_push_task_end(task);
	policy_unlock(&state->mutex);
	for (unsigned worker = 0; worker < starpu_worker_get_count(); worker++)
		starpu_wake_worker_relax_light((int)worker);
	return 0;
}

static struct starpu_task *pop(unsigned context)
{
	struct state *state = policy_state(context);
	const unsigned worker = (unsigned)starpu_worker_get_id_check(),
		       node = starpu_worker_get_memory_node(worker);
	struct starpu_task *best = NULL;
	unsigned implementation;
	policy_lock(&state->mutex);
	for (struct starpu_task *task = starpu_task_list_begin(&state->ready);
	     task && (!best || task->priority == best->priority); task = starpu_task_list_next(task))
		if (starpu_worker_can_execute_task_first_impl(worker, task, &implementation) &&
		    (!best || policy_missing(task, node) < policy_missing(best, node))) {
			best = task;
			starpu_task_set_implementation(task, implementation);
		}
	if (best)
		starpu_task_list_erase(&state->ready, best);
	policy_unlock(&state->mutex);
	return best;
}

struct starpu_sched_policy *starpu_get_sched_lib_policy(const char *name)
{
	static struct starpu_sched_policy policy = {.policy_name = "nearest",
						    .policy_description =
							"the task with the fewest bytes to move",
						    .init_sched = init,
						    .deinit_sched = deinit,
						    .push_task = push,
						    .pop_task = pop,
						    .worker_type = STARPU_WORKER_LIST};
	return strcmp(name, policy.policy_name) == 0 ? &policy : NULL;
}
