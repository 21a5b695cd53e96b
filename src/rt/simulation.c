/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/simulation.h"
#include "rt/session.h"
#include "rt/task_message.h"
#include "rt/task_times.h"
#include "rt/tile.h"
#include "rt/transfers.h"
#include "simulation/bounds.h"
#include "simulation/chosen.h"
#include "simulation/crossings.h"
#include "simulation/machine.h"
#include "simulation/measured.h"

#include <math.h>

/* The times of a tile in a run without limits: when its last writer and its last reader ended. */
struct tile_times {
	double written, read;
};

enum { RATIOS = 128 };

/* The simulation. StarPU has one machine, so there is one. */
static struct {
	int kinds;                        /* of workers: the CPUs, then those of the GPUs */
	struct smalti_measured *measured; /* NULL: there are no measurements */
	/* The errors of the machine's rates by operation: times that were measured, and those by the
	 * rates. */
	struct ratio {
		const char *name;
		double measured[1 + SMALTI_MACHINE_GPU_KINDS], reckoned[1 + SMALTI_MACHINE_GPU_KINDS];
	} ratios[RATIOS];
	int ratio_count;
	double *costs;   /* of each task by each kind, in seconds; INFINITY: none */
	double *waits;   /* of each task on a GPU, where exchanges block: seconds to receive data before it
			    begins */
	double received; /* bytes that the next inserted task receives */
	struct tile_times *tiles;
	int64_t tile_room;
	struct smalti_crossings *crossings;
	struct smalti_crossing uses[SMALTI_TASK_TILES];
	int use_count;
	double began; /* microseconds of StarPU's clock */
	struct smalti_simulation result;
	bool failed; /* out of memory */
} run;

static const struct smalti_machine_kind *kind_at(int kind)
{
	return kind == 0 ? &smalti_chosen.machine.cpu : &smalti_chosen.machine.gpu[kind - 1];
}

static int kind_of_gpu(int gpu)
{
	return 1 + (int)(smalti_machine_gpu(&smalti_chosen.machine, gpu) - smalti_chosen.machine.gpu);
}

static int check_rate(enum smalti_work work, int precision, struct smalti_error *error)
{
	for (int kind = 0; kind < run.kinds; kind++)
		if (kind_at(kind)->rates[work][precision] <= 0)
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "%s: %s has no rate for %s in %s; choose another precision, or "
					   "add it to the machine",
					   smalti_chosen.machine.name, kind_at(kind)->name,
					   smalti_machine_works[work], smalti_machine_precisions[precision]);
	return 0;
}

static int check_rates(struct smalti_error *error)
{
	const struct smalti_work_precisions *precisions = &smalti_chosen.precisions;
	for (int work = 0; work < SMALTI_WORKS; work++)
		if (check_rate((enum smalti_work)work, precisions->of[work], error) < 0)
			return -1;
	return precisions->int8 ? check_rate(SMALTI_PRODUCTS, SMALTI_MACHINE_INT8, error) : 0;
}

/* Returns the precision of most of a model's work of this kind. */
static int usual_precision(enum smalti_work work)
{
	const struct smalti_work_precisions *precisions = &smalti_chosen.precisions;
	return work == SMALTI_PRODUCTS && precisions->int8 ? SMALTI_MACHINE_INT8 : precisions->of[work];
}

/* Returns the precision of a step's arithmetic. */
static int step_precision(const struct smalti_step *step)
{
	const struct smalti_op *op = smalti_step_op(step);
	if (op->work >= SMALTI_WORKS)
		return 0; /* it has none */
	return op->dtype(step->arguments) == SMALTI_I8 ? SMALTI_MACHINE_INT8
						       : smalti_chosen.precisions.of[op->work];
}

int smalti_simulation_open(const struct smalti_simulated_machine *machine,
			   const struct smalti_work_precisions *precisions, struct smalti_error *error)
{
	smalti_chosen.machine = *machine;
	run.kinds = 1 + machine->gpu_kinds;
	if (!run.crossings && !(run.crossings = smalti_crossings_new(&smalti_chosen.machine, error)))
		return -1;
	smalti_chosen.precisions = *precisions;
	return check_rates(error);
}

int smalti_simulation_measure(const char *files, struct smalti_error *error)
{
	run.measured = smalti_measured_read(files, error);
	return run.measured ? 0 : -1;
}

void smalti_simulation_expect(struct smalti_session *session, const double *flops)
{
	for (int worker = 0; worker < session->workers; worker++) {
		double all = 0, seconds = 0;
		if (!smalti_session_device(session, worker))
			continue;
		const struct smalti_machine_kind *kind =
		    smalti_machine_gpu(&smalti_chosen.machine, starpu_worker_get_devid(worker));
		for (int work = 0; work < SMALTI_WORKS; work++) {
			all += flops[work];
			seconds += flops[work] / kind->rates[work][usual_precision((enum smalti_work)work)];
		}
		session->speeds[worker] = all / seconds;
	}
}

double smalti_simulation_now(void)
{
	return 1e-6 * starpu_timing_now();
}

/* The costs of tasks */

static double cost_of(const struct smalti_message *message, const struct smalti_machine_kind *kind)
{
	double seconds = 0;
	for (int i = 0; i < message->steps; i++) {
		const struct smalti_step *step = &message->step[i];
		const struct smalti_op *op = smalti_step_op(step);
		seconds += smalti_machine_seconds(kind, op->work, step_precision(step),
						  op->flops(step->arguments), op->bytes(step->arguments));
	}
	return seconds;
}

/* Returns StarPU's prediction, in microseconds. */
static double predict(struct starpu_task *task, struct starpu_perfmodel_arch *arch, unsigned implementation)
{
	(void)implementation;
	const struct smalti_message *message = task->cl_arg;
	int kind = 0;
	if (arch->devices[0].type == STARPU_CUDA_WORKER)
		kind = kind_of_gpu(arch->devices[0].devid);
	const double wait = kind > 0 ? run.waits[message->number] : 0;
	return 1e6 * (run.costs[message->number * run.kinds + kind] + wait);
}

void smalti_task_times_open(struct smalti_task_times *times, const char *name,
			    uint32_t (*footprint)(struct starpu_task *task))
{
	snprintf(times->symbol, sizeof(times->symbol), "smalti_%s", name);
	times->model.type = STARPU_PER_ARCH;
	times->model.symbol = times->symbol;
	times->model.arch_cost_function = predict;
	times->model.footprint = footprint;
}

double smalti_task_times_measured(struct starpu_task *task, int worker)
{
	(void)task, (void)worker;
	return (double)NAN;
}

int smalti_task_times_list(const struct smalti_task_times *times, uint64_t kind, int worker,
			   struct smalti_task_list *list, struct smalti_error *error)
{
	(void)times, (void)kind, (void)worker, (void)list, (void)error; /* the machine has the speeds */
	return 0;
}

/* The tasks that are inserted */

static void uses(void *user, const struct smalti_tile *tile, enum smalti_access access)
{
	(void)user;
	if (run.use_count == SMALTI_TASK_TILES)
		return;
	run.uses[run.use_count++] = (struct smalti_crossing){
	    .tile = tile->number,
	    .bytes = (double)smalti_tile_moved_bytes(tile),
	    .reads = access == SMALTI_READ || access == SMALTI_UPDATE,
	    .writes = access == SMALTI_WRITE || access == SMALTI_UPDATE,
	    .at_home = tile->formed || tile->memory || smalti_bits_has(&tile->valid_places, 0)};
}

static void receives(void *user, const struct smalti_tile *tile)
{
	(void)user;
	run.received += (double)(tile->rows * tile->row_bytes);
}

/* Returns the memory node that a task runs in; SMALTI_CROSSES_ANYWHERE: not known. */
static int memory_of(const struct starpu_task *task)
{
	enum { BITS = 32 };
	int memory = SMALTI_CROSSES_ANYWHERE;
	if (task->where == STARPU_CPU)
		return STARPU_MAIN_RAM;
	for (unsigned worker = 0; task->workerids && worker < starpu_worker_get_count(); worker++)
		if (task->workerids[worker / BITS] >> worker % BITS & 1) {
			const int node = (int)starpu_worker_get_memory_node(worker);
			if (memory != SMALTI_CROSSES_ANYWHERE && memory != node)
				return SMALTI_CROSSES_ANYWHERE;
			memory = node;
		}
	return memory;
}

/* Extends the longest chain of tasks by the next one, which takes `cost` seconds and runs in `memory`. */
static void extend_path(double cost, int memory)
{
	double begin = 0;
	for (int i = 0; i < run.use_count; i++) {
		if (smalti_grow_to(&run.tiles, &run.tile_room, run.uses[i].tile, sizeof(*run.tiles), NULL) <
		    0) {
			run.failed = true;
			return;
		}
		const struct tile_times *times = &run.tiles[run.uses[i].tile];
		begin = fmax(begin, run.uses[i].writes ? fmax(times->written, times->read) : 0);
		begin =
		    fmax(begin, times->written + smalti_crossings_delay(run.crossings, &run.uses[i], memory));
	}
	for (int i = 0; i < run.use_count; i++) {
		struct tile_times *times = &run.tiles[run.uses[i].tile];
		double *end = run.uses[i].writes ? &times->written : &times->read;
		*end = fmax(*end, begin + cost);
	}
	run.result.path = fmax(run.result.path, begin + cost);
}

static struct ratio *ratio_of(const char *name)
{
	static struct ratio other;
	int i = 0;
	while (i < run.ratio_count && strcmp(run.ratios[i].name, name) != 0)
		i++;
	if (i == RATIOS)
		return &other;
	if (i == run.ratio_count)
		run.ratios[run.ratio_count++].name = name;
	return &run.ratios[i];
}

/* Returns the measured seconds of such tasks; else the machine's estimate, times the ratio of measured to
 * estimated seconds of tasks of that name. */
static double cost_at(const struct starpu_task *task, const struct smalti_message *message, int kind)
{
	const double reckoned = cost_of(message, kind_at(kind));
	if (!run.measured)
		return reckoned;
	const double measured =
	    smalti_measured_seconds(run.measured, task->name, smalti_message_key(message), kind > 0);
	struct ratio *ratio = ratio_of(task->name);
	if (isnan(measured))
		return ratio->reckoned[kind] > 0 ? reckoned * ratio->measured[kind] / ratio->reckoned[kind]
						 : reckoned;
	ratio->measured[kind] += measured;
	ratio->reckoned[kind] += reckoned;
	return fmax(measured, 1e-7); /* StarPU takes 0 as unknown */
}

static double fill_costs(const struct starpu_task *task, const struct smalti_message *message, double *costs)
{
	double min = (double)INFINITY;
	for (int kind = 0; kind < run.kinds; kind++) {
		const bool can = kind == 0 || task->where != STARPU_CPU;
		costs[kind] = can ? cost_at(task, message, kind) : (double)INFINITY;
		min = fmin(min, costs[kind]);
	}
	return min;
}

static void inserts(void *user, struct starpu_task *task)
{
	(void)user;
	struct smalti_message *message = task->cl_arg;
	struct smalti_simulation *result = &run.result;
	if (result->tasks == 0) {
		run.began = starpu_timing_now();
		starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
	}
	message->number = result->tasks;
	if (smalti_grow(&run.costs, result->tasks, run.kinds * sizeof(*run.costs), NULL) < 0 ||
	    smalti_grow(&run.waits, result->tasks, sizeof(*run.waits), NULL) < 0)
		abort();
	const int memory = memory_of(task);
	double *costs = run.costs + result->tasks * run.kinds;
	const double received = smalti_machine_wait(&smalti_chosen.machine, run.received);
	const double min = fill_costs(task, message, costs), wait = memory > 0 ? received : 0;
	run.waits[result->tasks] = received;
	run.received = 0;
	extend_path(memory < 0 ? min : costs[memory ? kind_of_gpu(memory - 1) : 0] + wait, memory);
	if (smalti_crossings_add(run.crossings, run.uses, run.use_count, memory, costs[0], wait) < 0)
		run.failed = true;
	run.use_count = 0;
	result->tasks++;
	result->flops += task->flops;
}

/* The results */

static void add_stage(int64_t stage, double end)
{
	struct smalti_simulation *result = &run.result;
	while (result->steps < stage && !run.failed)
		if (smalti_grow(&result->step_ends, result->steps, sizeof(*result->step_ends), NULL) == 0)
			result->step_ends[result->steps++] = 0;
		else
			run.failed = true;
	if (!run.failed)
		result->step_ends[stage - 1] = fmax(result->step_ends[stage - 1], end);
}

static void ended(void *user, struct starpu_task *task, int worker)
{
	(void)user;
	const struct smalti_message *message = task->cl_arg;
	const struct starpu_profiling_task_info *info = task->profiling_info;
	struct smalti_simulation *result = &run.result;
	const unsigned node = starpu_worker_get_memory_node((unsigned)worker);
	const double start = starpu_timing_timespec_to_us((struct timespec *)&info->start_time),
		     stop = starpu_timing_timespec_to_us((struct timespec *)&info->end_time),
		     end = 1e-6 * (stop - run.began);
	struct smalti_simulated_memory *memory = &result->memories[node];
	result->workers[worker].busy += 1e-6 * (stop - start);
	result->workers[worker].tasks++;
	result->makespan = fmax(result->makespan, end);
	memory->peak = smalti_max(memory->peak, (int64_t)starpu_memory_get_used(node));
	if (message->position.stage > 0)
		add_stage(message->position.stage, end);
	else if (strcmp(message->task_group->name, "text") == 0)
		result->text = fmax(result->text, end);
}

const struct smalti_observer smalti_task_times_observer = {
    .uses = uses, .receives = receives, .inserts = inserts, .ended = ended};

static void count_transfers(struct smalti_session *session, struct smalti_simulation *result)
{
	int count = 0;
	const struct smalti_transfer *transfers = smalti_transfers(session, &count);
	for (int i = 0; i < count; i++) {
		result->memories[transfers[i].to].to += transfers[i].bytes;
		result->memories[transfers[i].from].from += transfers[i].bytes;
	}
}

struct smalti_simulation *smalti_simulation_take(struct smalti_session *session, struct smalti_error *error)
{
	struct smalti_simulation *result = smalti_calloc(1, sizeof(*result), error);
	int64_t counts[1 + SMALTI_MACHINE_GPU_KINDS];
	if (!result)
		return NULL;
	if (run.failed) {
		free(result);
		smalti_fail(error, SMALTI_ENOMEM, "no memory to record a simulation");
		return NULL;
	}
	*result = run.result;
	run.result.step_ends = NULL;
	result->worker_count = session->workers;
	for (int worker = 0; worker < session->workers; worker++)
		smalti_session_worker_name(worker, result->workers[worker].name);
	result->memory_count = (int)starpu_memory_nodes_get_count();
	for (int node = 0; node < result->memory_count; node++)
		result->memories[node].limit = (int64_t)starpu_memory_get_total((unsigned)node);
	count_transfers(session, result);
	int64_t gpus = starpu_cuda_worker_get_count(); /* the first of the machine's */
	counts[0] = starpu_cpu_worker_get_count();
	for (int kind = 1; kind < run.kinds; gpus -= counts[kind++])
		counts[kind] = smalti_min(gpus, kind_at(kind)->count);
	result->area = smalti_area_bound(run.costs, result->tasks, run.kinds, counts);
	result->transfers = run.result.transfers =
	    smalti_crossings_bound(run.crossings, counts[0], starpu_cuda_worker_get_count());
	return result;
}

double smalti_simulation_transfers(void)
{
	return run.result.transfers;
}

double smalti_simulation_host(void)
{
	return smalti_chosen.machine.host;
}

void smalti_simulation_free(struct smalti_simulation *simulation)
{
	if (!simulation)
		return;
	smalti_measured_free(run.measured);
	smalti_crossings_free(run.crossings);
	run.measured = NULL;
	run.crossings = NULL;
	free(simulation->step_ends);
	free(simulation);
}
