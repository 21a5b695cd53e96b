/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/machine.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "base/shipped.h"
#include "smalti/model.h"

#include <math.h>

static const double giga = 1e9, gibi = 1 << 30, tera = 1e12, micro = 1e-6;

/* A kind in the file's units. */
struct kind_fields {
	char *name;
	int64_t count;
	double memory, launch, bandwidth, pictures, half;
};

#define CONFIG struct kind_fields
static const struct smalti_field kind_rows[] = {
    {FIELD_TEXT("name", OPTIONAL, name)},
    {FIELD_INT("count", REQUIRED, count, 1, SMALTI_MACHINE_GPUS)},
    {FIELD_DOUBLE("memory_gib", REQUIRED, memory, 0.25, 1e6)},
    {FIELD_DOUBLE("launch_us", REQUIRED, launch, 0.1, 1e6)},
    {FIELD_DOUBLE("gbs", REQUIRED, bandwidth, 0.001, 1e9)},
    {FIELD_DOUBLE("picture_mps", OPTIONAL, pictures, 0.001, 1e9)},
    {FIELD_DOUBLE("half_gflop", OPTIONAL, half, 0, 1e9)},
};
#undef CONFIG

const char *const smalti_machine_precisions[SMALTI_MACHINE_PRECISIONS] = {[SMALTI_PRECISION_F32] = "f32",
									  [SMALTI_PRECISION_BF16] = "bf16",
									  [SMALTI_PRECISION_F16] = "f16",
									  [SMALTI_PRECISION_TF32] = "tf32",
									  [SMALTI_MACHINE_INT8] = "int8"};
const char *const smalti_machine_works[SMALTI_WORKS] = {
    [SMALTI_PRODUCTS] = "products", [SMALTI_CONVOLUTIONS] = "convolutions", [SMALTI_ATTENTION] = "attention"};

static const cJSON *object_in(const cJSON *object, const char *key, struct smalti_error *error)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, key);
	if (cJSON_IsObject(item))
		return item;
	smalti_fail(error, SMALTI_EFORMAT, "\"%s\": expected an object, found %s", key,
		    item ? "something else" : "nothing");
	return NULL;
}

/* Reads TFLOP/s by kind of work and precision. */
static int read_rates(const cJSON *object, struct smalti_machine_kind *kind, struct smalti_error *error)
{
	const cJSON *tflops = object_in(object, "tflops", error);
	for (int work = 0; tflops && work < SMALTI_WORKS; work++) {
		const cJSON *rates = object_in(tflops, smalti_machine_works[work], error);
		if (!rates)
			return -1;
		for (int i = 0; i < SMALTI_MACHINE_PRECISIONS; i++) {
			double *rate = &kind->rates[work][i];
			if (smalti_json_double(rates, smalti_machine_precisions[i], SMALTI_JSON_OPTIONAL,
					       1e-6, 1e9, rate, error) < 0)
				return -1;
			*rate *= tera;
		}
	}
	return tflops ? 0 : -1;
}

static int read_kind(const cJSON *object, const char *name, struct smalti_machine_kind *kind,
		     struct smalti_error *error)
{
	struct kind_fields fields = {.name = NULL};
	int status = smalti_fields_read(object, kind_rows, COUNT_OF(kind_rows), &fields, error);
	if (status == 0) {
		*kind = (struct smalti_machine_kind){.count = fields.count,
						     .memory = fields.memory * gibi,
						     .launch = fields.launch * micro,
						     .bandwidth = fields.bandwidth * giga,
						     .pictures = fields.pictures * SMALTI_MEGAPIXEL_BYTES,
						     .half = fields.half * giga};
		snprintf(kind->name, sizeof(kind->name), "%s", fields.name ? fields.name : name);
		/* StarPU's files have the name */
		if (kind->name[strspn(kind->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
						  "0123456789 -_./")])
			status =
			    smalti_fail(error, SMALTI_EFORMAT,
					"\"name\": expected letters, digits, spaces, '-', '_', '.' and '/'");
	}
	free(fields.name);
	return status ? -1 : read_rates(object, kind, error);
}

static int read_gpus(const cJSON *file, struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	const cJSON *gpus = cJSON_GetObjectItemCaseSensitive(file, "gpus");
	const cJSON *gpu;
	if (gpus && !cJSON_IsArray(gpus))
		return smalti_fail(error, SMALTI_EFORMAT, "\"gpus\": expected an array");
	cJSON_ArrayForEach (gpu, gpus) {
		if (machine->gpu_kinds == SMALTI_MACHINE_GPU_KINDS)
			return smalti_fail(error, SMALTI_EFORMAT, "\"gpus\": more than %d kinds",
					   SMALTI_MACHINE_GPU_KINDS);
		if (read_kind(gpu, "GPU", &machine->gpu[machine->gpu_kinds], error) < 0) {
			smalti_error_prefix(error, "\"gpus\"");
			return -1;
		}
		machine->gpu_kinds++;
	}
	return 0;
}

/* Reads NAME_gbs and NAME_us. */
static int read_link(const cJSON *links, const char *name, enum smalti_json_need need,
		     struct smalti_machine_link *link, struct smalti_error *error)
{
	char gbs[32], us[32];
	snprintf(gbs, sizeof(gbs), "%s_gbs", name);
	snprintf(us, sizeof(us), "%s_us", name);
	double bandwidth = 0, latency = 0;
	if (smalti_json_double(links, gbs, need, 0.001, 1e6, &bandwidth, error) < 0 ||
	    smalti_json_double(links, us, bandwidth > 0 ? SMALTI_JSON_REQUIRED : need, 0, 1e6, &latency,
			       error) < 0)
		return -1;
	*link = (struct smalti_machine_link){bandwidth * giga, latency * micro};
	return 0;
}

static int read_links(const cJSON *file, struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	if (machine->gpu_kinds == 0)
		return 0;
	const cJSON *links = object_in(file, "links", error);
	if (!links || read_link(links, "pcie", SMALTI_JSON_REQUIRED, &machine->pcie, error) < 0 ||
	    smalti_json_double(links, "host_gbs", SMALTI_JSON_REQUIRED, 0.001, 1e6, &machine->host, error) <
		0 ||
	    read_link(links, "nvlink", SMALTI_JSON_OPTIONAL, &machine->nvlink, error) < 0)
		return -1;
	machine->host *= giga;
	if (read_link(links, "nvswitch", SMALTI_JSON_OPTIONAL, &machine->nvswitch, error) < 0)
		return -1;
	return read_link(links, "exchange", SMALTI_JSON_OPTIONAL, &machine->exchange, error);
}

int64_t smalti_machine_gpus(const struct smalti_simulated_machine *machine)
{
	int64_t gpus = 0;
	for (int kind = 0; kind < machine->gpu_kinds; kind++)
		gpus += machine->gpu[kind].count;
	return gpus;
}

static int read_storage(const cJSON *file, struct smalti_simulated_machine *machine,
			struct smalti_error *error)
{
	const cJSON *storage = cJSON_GetObjectItemCaseSensitive(file, "storage");
	if (!storage)
		return 0;
	if (!(storage = object_in(file, "storage", error)) ||
	    smalti_json_double(storage, "read_gbs", SMALTI_JSON_REQUIRED, 0.001, 1e6, &machine->storage_read,
			       error) < 0 ||
	    smalti_json_double(storage, "write_gbs", SMALTI_JSON_REQUIRED, 0.001, 1e6,
			       &machine->storage_write, error) < 0)
		return -1;
	machine->storage_read *= giga;
	machine->storage_write *= giga;
	return 0;
}

static int read_nodes(const cJSON *file, struct smalti_simulated_machine *machine, struct smalti_error *error)
{
	const int64_t gpus = smalti_machine_gpus(machine);
	const cJSON *nodes = cJSON_GetObjectItemCaseSensitive(file, "nodes");
	machine->nodes = 1;
	if (!nodes)
		return 0;
	if (!(nodes = object_in(file, "nodes", error)) ||
	    smalti_json_int(nodes, "count", SMALTI_JSON_REQUIRED, 2, SMALTI_MACHINE_GPUS, &machine->nodes,
			    error) < 0 ||
	    read_link(nodes, "network", SMALTI_JSON_REQUIRED, &machine->network, error) < 0)
		return -1;
	if (gpus > 0 && gpus % machine->nodes == 0)
		return 0;
	return smalti_fail(error, SMALTI_EFORMAT, "\"nodes\": %lld GPUs on %lld; expected as many on each",
			   (long long)gpus, (long long)machine->nodes);
}

const struct smalti_machine_kind *smalti_machine_gpu(const struct smalti_simulated_machine *machine,
						     int64_t gpu)
{
	const struct smalti_machine_kind *kind = machine->gpu;
	while (gpu >= kind->count)
		gpu -= kind++->count;
	return kind;
}

int64_t smalti_machine_node(const struct smalti_simulated_machine *machine, int64_t gpu)
{
	return gpu / (smalti_machine_gpus(machine) / machine->nodes);
}

struct smalti_machine_link smalti_machine_between(const struct smalti_simulated_machine *machine,
						  int64_t from, int64_t to)
{
	const struct smalti_machine_link *pcie = &machine->pcie, *network = &machine->network;
	if (smalti_machine_node(machine, from) != smalti_machine_node(machine, to))
		return (struct smalti_machine_link){
		    fmin(network->bandwidth, fmin(pcie->bandwidth, machine->host)),
		    2 * pcie->latency + network->latency};
	if (machine->nvlink.bandwidth > 0)
		return machine->nvlink;
	if (machine->nvswitch.bandwidth > 0)
		return machine->nvswitch;
	return (struct smalti_machine_link){fmin(pcie->bandwidth, machine->host), 2 * pcie->latency};
}

/* Returns the link while all GPUs exchange. */
static struct smalti_machine_link exchange_of(const struct smalti_simulated_machine *machine)
{
	const int64_t sharers = smalti_machine_gpus(machine) / machine->nodes;
	struct smalti_machine_link link = {fmin(machine->pcie.bandwidth, machine->host / (double)sharers),
					   2 * machine->pcie.latency};
	if (machine->nvlink.bandwidth > 0)
		link = machine->nvlink;
	else if (machine->nvswitch.bandwidth > 0)
		link = machine->nvswitch;
	if (machine->nodes > 1)
		link = (struct smalti_machine_link){
		    fmin(link.bandwidth, machine->network.bandwidth / (double)sharers),
		    2 * machine->pcie.latency + machine->network.latency};
	return link;
}

void smalti_machine_block(struct smalti_simulated_machine *machine)
{
	machine->blocking = true;
	if (machine->exchange.bandwidth == 0 && machine->gpu_kinds > 0)
		machine->exchange = exchange_of(machine);
}

double smalti_machine_wait(const struct smalti_simulated_machine *machine, double bytes)
{
	return machine->blocking && bytes > 0
		   ? machine->exchange.latency + bytes / machine->exchange.bandwidth
		   : 0;
}

int smalti_machine_parse(const cJSON *file, struct smalti_simulated_machine *machine,
			 struct smalti_error *error)
{
	*machine = (struct smalti_simulated_machine){.gpu_kinds = 0};
	const char *name;
	const cJSON *cpus = object_in(file, "cpus", error);
	if (!cpus || smalti_json_string(file, "name", SMALTI_JSON_REQUIRED, &name, error) < 0)
		return -1;
	snprintf(machine->name, sizeof(machine->name), "%s", name);
	if (read_kind(cpus, "CPU", &machine->cpu, error) < 0 || read_gpus(file, machine, error) < 0 ||
	    read_links(file, machine, error) < 0 || read_storage(file, machine, error) < 0)
		return -1;
	if (machine->cpu.count > SMALTI_MACHINE_CPUS)
		return smalti_fail(error, SMALTI_EFORMAT, "\"cpus\": %lld CPUs; expected %d at most",
				   (long long)machine->cpu.count, SMALTI_MACHINE_CPUS);
	if (smalti_machine_gpus(machine) > SMALTI_MACHINE_GPUS)
		return smalti_fail(error, SMALTI_EFORMAT, "\"gpus\": %lld GPUs; expected %d at most",
				   (long long)smalti_machine_gpus(machine), SMALTI_MACHINE_GPUS);
	return read_nodes(file, machine, error);
}

char *smalti_machine_path(const char *file, struct smalti_error *error)
{
	if (strpbrk(file, "/."))
		return smalti_format(error, "%s", file);
	char name[SMALTI_MACHINE_NAME + 16], path[PATH_MAX];
	snprintf(name, sizeof(name), "machines/%.*s.json", SMALTI_MACHINE_NAME, file);
	if (smalti_find_shipped(name, path))
		return smalti_format(error, "%s", path);
	smalti_fail(
	    error, SMALTI_EIO,
	    "no machine is called '%.*s': name one that 'smalti simulate --machines' lists, or a file by "
	    "its path",
	    SMALTI_MACHINE_NAME, file);
	return NULL;
}

int smalti_machine_read(const char *file, struct smalti_simulated_machine *machine,
			struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_machine_path(file, error);
	cJSON *object = path ? smalti_config_open(path, error) : NULL;
	if (!path)
		return -1;
	return smalti_config_close(object, path, object ? smalti_machine_parse(object, machine, error) : -1,
				   error);
}

double smalti_machine_seconds(const struct smalti_machine_kind *kind, enum smalti_work work, int precision,
			      double flops, double bytes)
{
	const bool decodes = work == SMALTI_PICTURES && kind->pictures > 0;
	const double moving = bytes / (decodes ? kind->pictures : kind->bandwidth);
	const double rate = work < SMALTI_WORKS ? kind->rates[work][precision] : 0;
	const double computing = rate > 0 && flops > 0 ? (flops + kind->half) / rate : 0;
	return kind->launch + (computing > moving ? computing : moving);
}
