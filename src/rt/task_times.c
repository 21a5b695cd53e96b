/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/task_times.h"
#include "kernels/isa.h"
#include "ranks/ranks.h"
#include "rt/session.h"
#include "rt/slowdown.h"
#include "rt/task_message.h"

#include <math.h>

#include <xxhash.h>

static struct smalti_task_times *times_of(const struct starpu_task *task)
{
	return (struct smalti_task_times *)task->cl->model;
}

/* Returns a task's work in operations: its arithmetic, and constants for a byte moved and for a step. */
static double work_of(const struct starpu_task *task)
{
	enum { OPERATIONS_PER_BYTE = 8, OPERATIONS_PER_STEP = 100000 };
	struct smalti_message *message = task->cl_arg;
	if (message->work == 0)
		for (int i = 0; i < message->steps; i++) {
			const struct smalti_step *step = &message->step[i];
			message->work += OPERATIONS_PER_STEP + smalti_step_op(step)->flops(step->arguments) +
					 OPERATIONS_PER_BYTE * smalti_step_op(step)->bytes(step->arguments);
		}
	return message->work;
}

static struct starpu_perfmodel_arch *arch_of(const struct starpu_task *task, int worker)
{
	return starpu_worker_get_perf_archtype(worker, task->sched_ctx);
}

static double speed_of(const struct starpu_task *task, int worker)
{
	const struct smalti_message *message = task->cl_arg;
	return message->task_group->session->speeds[worker];
}

static _Atomic double *ratio_of(const struct starpu_task *task, int worker)
{
	return &times_of(task)->ratios[starpu_worker_get_memory_node((unsigned)worker)];
}

double smalti_task_times_measured(struct starpu_task *task, int worker)
{
	struct smalti_task_times *times = times_of(task);
	struct starpu_perfmodel *history = &times->history;
	struct starpu_perfmodel_arch *arch = arch_of(task, worker);
	times->asked = true;
	if (!history->is_loaded) /* it is loaded with the first task */
		return (double)NAN;
	const uint32_t key = starpu_task_footprint(history, task, arch, 0);
	return 1e-6 * starpu_perfmodel_history_based_expected_perf(history, arch, key);
}

/* Returns the seconds by the worker's speed, times the recent ratio of real times to these for the
 * codelet. */
static double estimate(const struct starpu_task *task, int worker)
{
	const double ratio = *ratio_of(task, worker);
	return (ratio > 0 ? ratio : 1) * work_of(task) / speed_of(task, worker);
}

/* Returns the expected microseconds. */
static double predict(struct starpu_task *task, unsigned worker, unsigned implementation)
{
	(void)implementation;
	const double measured = smalti_task_times_measured(task, (int)worker);
	const double seconds = isnan(measured) ? estimate(task, (int)worker) : measured;
	return fmax(1e6 * seconds, 1); /* 0 would mean unknown */
}

static void ended(void *user, struct starpu_task *task, int worker)
{
	(void)user;
	const struct smalti_message *message = task->cl_arg;
	const double seconds = message->seconds;
	struct smalti_task_times *times = times_of(task);
	if (!times->asked || seconds <= 0 || smalti_task_group_failed(message->task_group))
		return;
	starpu_perfmodel_update_history(&times->history, task, arch_of(task, worker), 0, 0, 1e6 * seconds);
	_Atomic double *ratio = ratio_of(task, worker);
	const double now = seconds * speed_of(task, worker) / work_of(task);
	*ratio = *ratio > 0 ? 0.75 * *ratio + 0.25 * now : now;
}

const struct smalti_observer smalti_task_times_observer = {.ended = ended};

static const struct starpu_perfmodel_history_list *entries_of(struct starpu_perfmodel *history, int worker)
{
	const struct starpu_perfmodel_per_arch *arch = starpu_perfmodel_get_model_per_arch(
	    history, starpu_worker_get_perf_archtype(worker, STARPU_NMAX_SCHED_CTXS), 0);
	return arch ? arch->list : NULL;
}

static int add(struct smalti_task_list *list, uint64_t kind,
	       const struct starpu_perfmodel_history_entry *entry, struct smalti_error *error)
{
	if (entry->nsample < 2)
		return 0;
	if (smalti_grow(&list->time, list->count, sizeof(*list->time), error) < 0)
		return -1;
	list->time[list->count++] = (struct smalti_task_time){kind << 32 | entry->footprint, entry->flops,
							      entry->nsample, 1e-6 * entry->mean};
	return 0;
}

int smalti_task_times_list(const struct smalti_task_times *times, uint64_t kind, int worker,
			   struct smalti_task_list *list, struct smalti_error *error)
{
	char path[512];
	int status = 0;
	struct starpu_perfmodel history = {.type = STARPU_HISTORY_BASED};
	starpu_perfmodel_get_model_path(times->symbol, path, sizeof(path));
	if (access(path, R_OK) < 0 || starpu_perfmodel_load_symbol(times->symbol, &history))
		return 0;
	for (const struct starpu_perfmodel_history_list *at = entries_of(&history, worker); at && status == 0;
	     at = at->next)
		status = add(list, kind, at->entry, error);
	starpu_perfmodel_unload_model(&history);
	return status;
}

/* Returns what files tell beside the key. StarPU would ask the tiles, which may be gone. */
static size_t size_of(struct starpu_task *task, unsigned implementation)
{
	(void)implementation;
	return (size_t)task->flops;
}

/* Names the history. Slowed workers have their own. */
static void name_history(struct smalti_task_times *times, const char *name)
{
	const char *slowdown = smalti_slowdown_text(), *isa = smalti_isa_name(smalti_isa());
	const int length = snprintf(times->symbol, sizeof(times->symbol), "smalti_%s_%s", name, isa);
	if (slowdown)
		snprintf(times->symbol + length, sizeof(times->symbol) - (size_t)length, "_%08x",
			 XXH32(slowdown, strlen(slowdown), 0));
}

void smalti_task_times_open(struct smalti_task_times *times, const char *name,
			    uint32_t (*footprint)(struct starpu_task *task))
{
	name_history(times, name);
	times->history.type = STARPU_HISTORY_BASED;
	times->history.symbol = times->symbol;
	times->history.size_base = size_of;
	times->asked = smalti_ranks_count() > 1; /* with any policy: plans of later jobs ask */
	times->model.type = STARPU_PER_WORKER;
	times->model.worker_cost_function = predict;
	times->history.footprint = times->model.footprint = footprint;
}
