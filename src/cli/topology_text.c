/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"
#include "cli/numbers.h"
#include "cli/topology.h"

enum { LABEL = 14 };

static void label(FILE *to, const char *name)
{
	fprintf(to, "  %-*s", LABEL, name);
}

static void print_processor(const struct smalti_topology *t, FILE *to)
{
	label(to, "processor");
	fprintf(to, "%s\n", *t->cpu ? t->cpu : "unknown");
	label(to, "");
	fprintf(to, "%" PRId64 " package%s, %" PRId64 " core%s, %" PRId64 " hardware thread%s\n", t->packages,
		smalti_plural(t->packages), t->cores, smalti_plural(t->cores), t->threads,
		smalti_plural(t->threads));
	if (t->allowed_cores < t->cores) {
		label(to, "");
		fprintf(to, "%" PRId64 " core%s allowed for this process\n", t->allowed_cores,
			smalti_plural(t->allowed_cores));
	}
	label(to, "instructions");
	fprintf(to, "%s in use", t->isa);
	if (*t->max_isa)
		fprintf(to, " (SMALTI_MAX_ISA=%s)", t->max_isa);
	fputc('\n', to);
	if (!*t->features)
		return;
	label(to, "");
	smalti_print_wrapped(to, t->features, LABEL + 2, LABEL + 2);
}

static void print_caches(const struct smalti_topology *t, FILE *to)
{
	char size[SMALTI_NUMBER];
	label(to, "caches");
	for (int64_t i = 0; i < t->cache_count; i++) {
		const struct smalti_topology_cache *cache = &t->caches[i];
		const char *suffix = cache->kind[0] == 'd' ? "d" : cache->kind[0] == 'i' ? "i" : "";
		fprintf(to, "%sL%" PRId64 "%s ", i ? ", " : "", cache->level, suffix);
		if (cache->count > 1)
			fprintf(to, "%" PRId64 " × ", cache->count);
		fputs(smalti_number_bytes((double)cache->bytes, size), to);
	}
	fprintf(to, "%s\n", t->cache_count ? "" : "unknown");
}

static int64_t gpu_workers(const struct smalti_topology *t)
{
	int64_t count = 0;
	for (int64_t i = 0; i < t->worker_count; i++)
		count += strcmp(t->workers[i].kind, "CPU") != 0;
	return count;
}

static int64_t memory_of_nodes(const struct smalti_topology *t)
{
	int64_t bytes = 0;
	for (int64_t i = 0; i < t->numa_node_count; i++)
		bytes += t->numa_nodes[i].bytes;
	return bytes;
}

static void print_machine(const struct smalti_topology *t, FILE *to)
{
	char size[SMALTI_NUMBER];
	fputs("Machine\n", to);
	print_processor(t, to);
	print_caches(t, to);
	for (int64_t i = 0; i < t->numa_node_count; i++) {
		const struct smalti_topology_numa *node = &t->numa_nodes[i];
		label(to, i ? "" : "memory");
		fprintf(to, "NUMA %" PRId64 ": %s, %" PRId64 " core%s\n", node->node,
			node->bytes ? smalti_number_bytes((double)node->bytes, size) : "unknown size",
			node->cores, smalti_plural(node->cores));
	}
	if (t->memory < memory_of_nodes(t)) {
		label(to, "");
		fprintf(to, "%s allowed for this process\n", smalti_number_bytes((double)t->memory, size));
	}
	for (int64_t i = 0; i < t->gpu_count; i++) {
		const struct smalti_topology_gpu *gpu = &t->gpus[i];
		label(to, i ? "" : "GPUs");
		fprintf(to, "%s %s", gpu->bus, *gpu->name ? gpu->name : "unknown device");
		fprintf(to, *gpu->devices ? " (%s)\n" : "\n", gpu->devices);
	}
	label(to, t->gpu_count ? "" : "GPUs");
	if (!t->gpu_count)
		fputs("none seen\n", to);
	else
		fprintf(to, "%" PRId64 " driven by workers\n", gpu_workers(t));
}

static const char *active_policy(const struct smalti_topology *t)
{
	for (int64_t i = 0; i < t->policy_count; i++)
		if (t->policies[i].active)
			return t->policies[i].name;
	return "of its own";
}

static void print_workers(const struct smalti_topology *t, FILE *to)
{
	fprintf(to, "\nWorkers, under policy %s\n", active_policy(t));
	for (int64_t i = 0; i < t->worker_count; i++) {
		const struct smalti_topology_worker *worker = &t->workers[i];
		label(to, worker->name);
		if (strlen(worker->name) >= LABEL)
			fprintf(to, "\n  %-*s", LABEL, "");
		if (worker->core >= 0)
			fprintf(to, "on core %" PRId64, worker->core);
		else
			fputs("not bound", to);
		fprintf(to, ", memory node %" PRId64 "\n", worker->memory_node);
	}
}

static void print_memory_nodes(const struct smalti_topology *t, FILE *to)
{
	char text[SMALTI_NUMBER];
	fputs("\nMemory nodes\n", to);
	for (int64_t i = 0; i < t->memory_node_count; i++) {
		const struct smalti_topology_memory_node *node = &t->memory_nodes[i];
		fprintf(to, "  %-*" PRId64 "%s, %s\n", LABEL, i, node->name,
			node->bytes ? smalti_number_bytes((double)node->bytes, text) : "no limit");
	}
	for (int64_t i = 0; i < t->link_count; i++) {
		const struct smalti_topology_link *link = &t->links[i];
		snprintf(text, sizeof(text), "%" PRId64 " to %" PRId64, link->from, link->to);
		label(to, text);
		fprintf(to, "%.1f GB/s, %.1f µs\n", 1e-9 * link->bandwidth, 1e6 * link->latency);
	}
}

static void print_rates(const struct smalti_topology *t, FILE *to)
{
	static const struct {
		const char *name, *unit;
		size_t offset;
	} rows[] = {
	    {"read", "GB/s", offsetof(struct smalti_topology_rate, read)},
	    {"copy", "GB/s", offsetof(struct smalti_topology_rate, copy)},
	    {"triad", "GB/s", offsetof(struct smalti_topology_rate, triad)},
	    {"f32 FMA", "GFLOP/s", offsetof(struct smalti_topology_rate, fma)},
	};
	char size[SMALTI_NUMBER];
	if (!t->rate_count)
		return;
	fprintf(to, "\n%-*s", LABEL + 2, "Measured");
	for (int64_t i = 0; i < t->rate_count; i++)
		fprintf(to, "%4" PRId64 " worker%-1s", t->rates[i].workers,
			smalti_plural(t->rates[i].workers));
	fputc('\n', to);
	for (size_t row = 0; row < COUNT_OF(rows); row++) {
		label(to, rows[row].name);
		for (int64_t i = 0; i < t->rate_count; i++)
			fprintf(to, "%11.1f ",
				1e-9 * *(const double *)((const char *)&t->rates[i] + rows[row].offset));
		fprintf(to, " %s\n", rows[row].unit);
	}
	fprintf(to, "  memory: going through %s; arithmetic: in registers, %s\n",
		smalti_number_bytes((double)t->rates[0].bytes, size), t->isa);
}

static void print_libraries(const struct smalti_topology *t, FILE *to)
{
	fputs("\nLibraries\n", to);
	for (int64_t i = 0; i < t->library_count; i++) {
		const struct smalti_topology_library *library = &t->libraries[i];
		fprintf(to, "  %-17s %-8s %s\n", library->name, library->version, library->serves);
	}
}

static void print_policies(const struct smalti_topology *t, FILE *to)
{
	char names[4096] = "";
	for (int64_t i = 0; i < t->policy_count; i++)
		smalti_append(names, sizeof(names), " ", "%s", t->policies[i].name);
	fputs("\nScheduling policies\n  ", to);
	smalti_print_wrapped(to, names, 2, 2);
}

void smalti_topology_print(const struct smalti_topology *topology, FILE *to)
{
	print_machine(topology, to);
	print_workers(topology, to);
	print_memory_nodes(topology, to);
	print_rates(topology, to);
	print_libraries(topology, to);
	print_policies(topology, to);
}
