/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/calibrate.h"
#include "base/json.h"
#include "simulation/machine.h"
#include "simulation/trace_tasks.h"
#include "smalti/model.h"

#include <math.h>

enum { CPU, DEVICE, KINDS };

/* Sums over the tasks of a class. */
struct sum {
	double flops, bytes, seconds, count;
};

/* The workers of a kind. */
struct kind {
	char name[SMALTI_MACHINE_NAME];
	int workers;   /* the most in one trace */
	double memory; /* bytes: of all CPUs, of a device */
	double launch; /* seconds of the shortest task */
	struct sum operations[SMALTI_WORKS];
	struct sum moving, pictures;
};

struct calibration {
	enum smalti_work (*work_of)(const char *op);
	struct kind kind[KINDS];
	/* The slowest link between main memory and a device, and between devices; 0: none. */
	struct smalti_machine_link host, peer;
	int ranks;                          /* the processes of an MPI job; 0: one process */
	struct smalti_machine_link network; /* the slowest between two of them */
};

/* Returns the sum of a task; NULL: none. Tasks without flops read files or pack weights. Tasks of several
 * operations, or of no class, count only with no more flops than bytes: else arithmetic may limit them, too.
 */
static struct sum *sum_of(const struct calibration *calibration, struct kind *kind,
			  const struct smalti_traced_task *task)
{
	const enum smalti_work work = calibration->work_of(task->name);
	if (work < SMALTI_WORKS)
		return task->flops > 0 ? &kind->operations[work] : NULL;
	if (work == SMALTI_PICTURES)
		return &kind->pictures;
	return task->flops > 0 && task->flops <= task->bytes ? &kind->moving : NULL;
}

static int on_task(void *user, const struct smalti_traced_machine *machine,
		   const struct smalti_traced_task *task, struct smalti_error *error)
{
	struct calibration *calibration = user;
	(void)error;
	const bool device = smalti_traced_device(machine->worker[task->worker]);
	struct kind *kind = &calibration->kind[device ? DEVICE : CPU];
	struct sum *sum = sum_of(calibration, kind, task);
	if (!sum)
		return 0;
	kind->launch = fmin(kind->launch, task->seconds);
	sum->flops += task->flops;
	sum->bytes += task->bytes;
	sum->seconds += task->seconds;
	sum->count++;
	return 0;
}

/* Finds a device's name, "A100" in "CUDA 0.0 (A100 39.2 GiB)", in letters that a machine's file may have. */
static void name_kind(const char *worker, char name[SMALTI_MACHINE_NAME])
{
	const char *open = strchr(worker, '(');
	snprintf(name, SMALTI_MACHINE_NAME, "%s", open ? open + 1 : worker);
	name[strcspn(name, ")")] = '\0';
	char *unit = strrchr(name, ' ');
	if (unit && strcmp(unit, " GiB") == 0) {
		*unit = '\0';
		char *size = strrchr(name, ' ');
		*(size ? size : unit) = '\0';
	}
	for (char *c = name; *c; c++)
		if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
		      strchr(" -_./", *c)))
			*c = '-';
}

static int count_workers(struct calibration *calibration, const struct smalti_traced_machine *machine,
			 struct smalti_error *error)
{
	int workers[KINDS] = {0};
	for (int worker = 0; worker < machine->workers; worker++) {
		char name[SMALTI_MACHINE_NAME] = "core";
		const bool device = smalti_traced_device(machine->worker[worker]);
		struct kind *kind = &calibration->kind[device ? DEVICE : CPU];
		if (device)
			name_kind(machine->worker[worker], name);
		if (kind->name[0] && strcmp(kind->name, name) != 0)
			return smalti_fail(
			    error, SMALTI_EUNSUPPORTED,
			    "devices that are not alike, '%s' and '%s': trace runs on those of "
			    "one kind",
			    kind->name, name);
		snprintf(kind->name, sizeof(kind->name), "%s", name);
		kind->workers = (int)fmax(kind->workers, ++workers[device ? DEVICE : CPU]);
	}
	return 0;
}

static void add_link(struct smalti_machine_link *link, const cJSON *item)
{
	const double bandwidth = 1e9 * smalti_json_number(item, "gbs"),
		     latency = 1e-6 * smalti_json_number(item, "us");
	if (!(bandwidth > 0 && isfinite(bandwidth) && latency >= 0 && isfinite(latency)))
		return;
	if (link->bandwidth == 0 || bandwidth < link->bandwidth)
		link->bandwidth = bandwidth;
	link->latency = fmax(link->latency, latency);
}

static int add_ranks(struct calibration *calibration, const cJSON *ranks, struct smalti_error *error)
{
	const double count = smalti_json_number(ranks, "count");
	add_link(&calibration->network, ranks);
	if (!(count >= 2 && count <= SMALTI_MACHINE_GPUS && calibration->network.bandwidth > 0))
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"ranks\": expected 2 to %d processes and the link between them",
				   SMALTI_MACHINE_GPUS);
	calibration->ranks = (int)fmax(calibration->ranks, count);
	return 0;
}

static int on_machine(void *user, const struct smalti_traced_machine *machine, struct smalti_error *error)
{
	struct calibration *calibration = user;
	const cJSON *item;
	int place = 0;
	cJSON_ArrayForEach (item, machine->memories) {
		struct kind *kind = &calibration->kind[place++ ? DEVICE : CPU];
		kind->memory = fmax(kind->memory, cJSON_GetNumberValue(item));
	}
	cJSON_ArrayForEach (item, machine->links) {
		const bool host =
		    smalti_json_number(item, "from") == 0 || smalti_json_number(item, "to") == 0;
		add_link(host ? &calibration->host : &calibration->peer, item);
	}
	if (machine->ranks && add_ranks(calibration, machine->ranks, error) < 0)
		return -1;
	return count_workers(calibration, machine, error);
}

/* Returns the work a second of tasks, without the time of the shortest task for each; 0: there were none. */
static double rate_of(const struct kind *kind, const struct sum *sum, double work)
{
	const double seconds = sum->seconds - sum->count * kind->launch;
	return sum->count > 0 ? work / fmax(seconds, 0.1 * sum->seconds) : 0;
}

static double flops_of(const struct kind *kind, enum smalti_work work)
{
	return rate_of(kind, &kind->operations[work], kind->operations[work].flops);
}

/* Returns the bytes a second of memory, at least those of each class, so that its operands slow no class. */
static double bandwidth_of(const struct kind *kind)
{
	double bandwidth = rate_of(kind, &kind->moving, kind->moving.bytes);
	for (int work = 0; work < SMALTI_WORKS; work++)
		bandwidth =
		    fmax(bandwidth, rate_of(kind, &kind->operations[work], kind->operations[work].bytes));
	return bandwidth;
}

static int check_kind(const struct kind *kind, const char *name, struct smalti_error *error)
{
	if (!(flops_of(kind, SMALTI_PRODUCTS) > 0 && kind->moving.count > 0))
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "too few operations on %s: trace 'smalti generate --grain operation' with it, too", name);
	if (!isfinite(flops_of(kind, SMALTI_PRODUCTS)) || !isfinite(bandwidth_of(kind)))
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "tasks on %s that take no time: expected traces of 'smalti generate --trace'", name);
	if (!(kind->memory > 0))
		return smalti_fail(error, SMALTI_EFORMAT, "no memory of %s: expected \"memories\"", name);
	return 0;
}

/* Checks the kinds; every machine has CPUs. */
static int check(const struct calibration *calibration, struct smalti_error *error)
{
	const struct kind *device = &calibration->kind[DEVICE];
	if (check_kind(&calibration->kind[CPU], "CPUs", error) < 0 ||
	    (device->workers && check_kind(device, device->name, error) < 0))
		return -1;
	if (device->workers && calibration->host.bandwidth == 0)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "no link between main memory and %s: expected \"links\"", device->name);
	return 0;
}

/* Adds a number with six digits, which no run repeats. */
static bool add_number(cJSON *object, const char *key, double value)
{
	char text[32];
	snprintf(text, sizeof(text), "%.6g", value);
	return cJSON_AddNumberToObject(object, key, strtod(text, NULL));
}

/* Fills in a kind; what did not run gets the rate of products. */
static bool fill_kind(cJSON *object, const struct kind *kind, int precision)
{
	bool good = cJSON_AddStringToObject(object, "name", kind->name) &&
		    cJSON_AddNumberToObject(object, "count", kind->workers ? kind->workers : 1) &&
		    add_number(object, "memory_gib", kind->memory / (1 << 30)) &&
		    add_number(object, "launch_us", fmax(1e6 * kind->launch, 0.1)) &&
		    add_number(object, "gbs", 1e-9 * bandwidth_of(kind));
	if (good && kind->pictures.count > 0)
		good =
		    add_number(object, "picture_mps",
			       rate_of(kind, &kind->pictures, kind->pictures.bytes) / SMALTI_MEGAPIXEL_BYTES);
	cJSON *tflops = cJSON_AddObjectToObject(object, "tflops");
	for (int work = 0; work < SMALTI_WORKS && good; work++) {
		cJSON *rates = cJSON_AddObjectToObject(tflops, smalti_machine_works[work]);
		const double rate = flops_of(kind, (enum smalti_work)work);
		/* the VAE computes in f32 where its precision is not that of the transformer */
		const bool may_be_f32 = work == SMALTI_CONVOLUTIONS && precision != SMALTI_PRECISION_F32;
		const double tera = 1e-12 * (rate > 0 ? rate : flops_of(kind, SMALTI_PRODUCTS));
		good =
		    rates && add_number(rates, smalti_machine_precisions[precision], tera) &&
		    (!may_be_f32 || add_number(rates, smalti_machine_precisions[SMALTI_PRECISION_F32], tera));
	}
	return good;
}

/* Returns all workers of a process as one, which is as fast as they are together. */
static struct kind together(const struct kind *kind)
{
	struct kind one = *kind;
	if (kind->workers > 1)
		snprintf(one.name, sizeof(one.name), "%d cores", kind->workers);
	one.workers = 1;
	one.launch /= kind->workers;
	one.moving.seconds /= kind->workers;
	one.pictures.seconds /= kind->workers;
	for (int work = 0; work < SMALTI_WORKS; work++)
		one.operations[work].seconds /= kind->workers;
	return one;
}

static bool fill_links(cJSON *object, const struct calibration *calibration)
{
	const struct smalti_machine_link *host = &calibration->host, *peer = &calibration->peer;
	bool good = object && add_number(object, "pcie_gbs", 1e-9 * host->bandwidth) &&
		    add_number(object, "pcie_us", 1e6 * host->latency) &&
		    add_number(object, "host_gbs", 2e-9 * host->bandwidth); /* one device, both directions */
	if (good && peer->bandwidth > 1.5 * host->bandwidth)                /* so not through the host */
		good = add_number(object, "nvlink_gbs", 1e-9 * peer->bandwidth) &&
		       add_number(object, "nvlink_us", 1e6 * peer->latency);
	return good;
}

static bool fill_nodes(cJSON *object, const struct calibration *calibration)
{
	return object && cJSON_AddNumberToObject(object, "count", calibration->ranks) &&
	       add_number(object, "network_gbs", 1e-9 * calibration->network.bandwidth) &&
	       add_number(object, "network_us", 1e6 * calibration->network.latency);
}

/* Fills in what computes beside main memory's CPUs: devices, or the processes of an MPI job without devices.
 */
static bool fill_places(cJSON *machine, struct calibration calibration, int precision)
{
	struct kind *place = &calibration.kind[DEVICE];
	if (!place->workers) {
		*place = together(&calibration.kind[CPU]);
		calibration.host.bandwidth = bandwidth_of(place); /* it computes in its main memory */
	}
	if (calibration.ranks)
		place->workers *= calibration.ranks;
	cJSON *gpus = cJSON_AddArrayToObject(machine, "gpus");
	cJSON *gpu = cJSON_CreateObject();
	if (!gpus || !gpu || !cJSON_AddItemToArray(gpus, gpu)) {
		cJSON_Delete(gpu);
		return false;
	}
	return fill_kind(gpu, place, precision) &&
	       fill_links(cJSON_AddObjectToObject(machine, "links"), &calibration) &&
	       (!calibration.ranks || fill_nodes(cJSON_AddObjectToObject(machine, "nodes"), &calibration));
}

static bool fill(cJSON *machine, const struct calibration *calibration, int precision)
{
	cJSON *cpus = cJSON_AddStringToObject(machine, "name", "calibrated")
			  ? cJSON_AddObjectToObject(machine, "cpus")
			  : NULL;
	if (!cpus || !fill_kind(cpus, &calibration->kind[CPU], precision))
		return false;
	return (!calibration->kind[DEVICE].workers && !calibration->ranks) ||
	       fill_places(machine, *calibration, precision);
}

int smalti_calibrate(const char *files, enum smalti_work (*work_of)(const char *op), int precision,
		     const char *output, struct smalti_error *error)
{
	struct calibration calibration = {
	    .work_of = work_of,
	    .kind = {[CPU] = {.launch = (double)INFINITY}, [DEVICE] = {.launch = (double)INFINITY}}};
	const struct smalti_trace_reader reader = {on_task, on_machine, &calibration};
	if (smalti_traces_read(files, &reader, error) < 0 || check(&calibration, error) < 0)
		return -1;
	SCOPED(cJSON_Delete) cJSON *machine = cJSON_CreateObject();
	if (!machine || !fill(machine, &calibration, precision))
		return smalti_fail(error, SMALTI_ENOMEM, "out of memory for %s", output);
	struct smalti_simulated_machine read;
	if (smalti_machine_parse(machine, &read, error) < 0) {
		smalti_error_prefix(error, "%s: the tasks' times give no machine that can be simulated",
				    files);
		return -1;
	}
	return smalti_json_write(output, machine, error);
}
