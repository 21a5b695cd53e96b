/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "simulator/case.h"

#include <starpu.h>

static void add_stages(cJSON *object, const struct smalti_simulate_options *options,
		       const struct smalti_simulation *s)
{
	const int64_t steps = s->steps - 1; /* the last stage is decoding */
	cJSON_AddNumberToObject(object, "text", s->text);
	if (steps < 1 || options->request.images > 1)
		return;
	const double *ends = s->step_ends;
	cJSON_AddNumberToObject(object, "denoising", ends[steps - 1] - s->text);
	if (steps > 1)
		cJSON_AddNumberToObject(object, "step", (ends[steps - 1] - ends[0]) / (double)(steps - 1));
	cJSON_AddNumberToObject(object, "decoding", ends[steps] - ends[steps - 1]);
}

static void add_training(cJSON *object, const struct smalti_case_outcome *outcome)
{
	cJSON_AddNumberToObject(object, "step", outcome->step);
	cJSON_AddNumberToObject(object, "checkpoint_bytes", (double)outcome->checkpoint_bytes);
	if (outcome->checkpoint > 0) {
		cJSON_AddNumberToObject(object, "checkpoint", outcome->checkpoint);
		cJSON_AddNumberToObject(object, "reading", outcome->reading);
	}
}

/* Adds what a job is asked for. */
static void add_job(cJSON *object, const struct smalti_simulate_options *options,
		    const struct smalti_case_outcome *outcome)
{
	const double items = (double)options->extraction.items, makespan = outcome->simulation->makespan;
	switch (options->job) {
	case SMALTI_SIMULATED_IMAGES:
		add_stages(object, options, outcome->simulation);
		break;
	case SMALTI_SIMULATED_TRAINING:
		add_training(object, outcome);
		break;
	case SMALTI_SIMULATED_EXTRACTION:
		cJSON_AddNumberToObject(object, "items", items);
		cJSON_AddNumberToObject(object, "items_per_second", items / makespan);
		break;
	}
}

static bool add_workers(cJSON *object, const struct smalti_simulation *s)
{
	cJSON *workers = cJSON_AddArrayToObject(object, "workers");
	for (int i = 0; i < s->worker_count; i++) {
		cJSON *worker = cJSON_CreateObject();
		if (!worker || !cJSON_AddItemToArray(workers, worker))
			return false;
		cJSON_AddStringToObject(worker, "name", s->workers[i].name);
		cJSON_AddNumberToObject(worker, "busy", s->workers[i].busy);
		cJSON_AddNumberToObject(worker, "tasks", (double)s->workers[i].tasks);
	}
	return true;
}

static bool add_memories(cJSON *object, const struct smalti_simulation *s)
{
	cJSON *memories = cJSON_AddArrayToObject(object, "memories");
	for (int i = 0; i < s->memory_count; i++) {
		cJSON *memory = cJSON_CreateObject();
		if (!memory || !cJSON_AddItemToArray(memories, memory))
			return false;
		cJSON_AddNumberToObject(memory, "peak", (double)s->memories[i].peak);
		cJSON_AddNumberToObject(memory, "limit", (double)s->memories[i].limit);
		if (s->memories[i].needed > 0)
			cJSON_AddNumberToObject(memory, "needed", (double)s->memories[i].needed);
		cJSON_AddNumberToObject(memory, "to", (double)s->memories[i].to);
		cJSON_AddNumberToObject(memory, "from", (double)s->memories[i].from);
	}
	return true;
}

int smalti_case_print(const struct smalti_case *c, const struct smalti_case_outcome *outcome,
		      struct smalti_error *error)
{
	const struct smalti_simulate_options *options = c->options;
	const struct smalti_simulation *simulation = outcome->simulation;
	cJSON *object = cJSON_CreateObject();
	bool broken = false;
	cJSON_AddStringToObject(object, "machine", c->machine.name);
	cJSON_AddStringToObject(object, "sched", starpu_sched_get_sched_policy()->policy_name);
	if (outcome->strategy)
		cJSON_AddStringToObject(object, "strategy", outcome->strategy);
	cJSON_AddBoolToObject(object, "blocking", options->blocking);
	cJSON_AddNumberToObject(object, "makespan", simulation->makespan);
	add_job(object, options, outcome);
	cJSON_AddNumberToObject(object, "area_bound", simulation->area);
	cJSON_AddNumberToObject(object, "path_bound", simulation->path);
	cJSON_AddNumberToObject(object, "transfer_bound", simulation->transfers);
	cJSON_AddNumberToObject(object, "tasks", (double)simulation->tasks);
	cJSON_AddNumberToObject(object, "flops", simulation->flops);
	if (!add_workers(object, simulation) || !add_memories(object, simulation)) {
		cJSON_Delete(object);
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for what a simulation showed");
	}
	smalti_json_line(object, &broken);
	return broken ? smalti_fail(error, SMALTI_EIO, "nobody reads what the simulation shows") : 0;
}
