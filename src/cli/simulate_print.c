/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/simulate_print.h"
#include "base/file.h"
#include "base/json.h"
#include "base/shipped.h"
#include "cli/numbers.h"
#include "simulation/machine.h"

static const char *text(const cJSON *object, const char *key)
{
	const char *found = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, key));
	return found ? found : "";
}

static void print_times(const cJSON *outcome, FILE *file)
{
	static const struct {
		const char *key, *label, *unit;
	} rows[] = {
	    {"makespan", "all", "s"},
	    {"text", "text encoder", "s"},
	    {"denoising", "denoising", "s"},
	    {"step", "a step", "s"},
	    {"checkpoint", "a checkpoint", "s"},
	    {"reading", "reading a batch", "s"},
	    {"decoding", "decoding", "s"},
	    {"items_per_second", "items", "a second"},
	    {"area_bound", "bound by work", "s"},
	    {"path_bound", "bound by order", "s"},
	    {"transfer_bound", "bound by transfers", "s"},
	};
	for (size_t i = 0; i < COUNT_OF(rows); i++)
		if (cJSON_HasObjectItem(outcome, rows[i].key))
			fprintf(file, "  %-18s %12.6f %s\n", rows[i].label,
				smalti_json_number(outcome, rows[i].key), rows[i].unit);
}

static void print_workers(const cJSON *outcome, FILE *file)
{
	const double makespan = smalti_json_number(outcome, "makespan");
	const cJSON *worker;
	fprintf(file, "  %-32s %8s %8s\n", "worker", "busy", "tasks");
	cJSON_ArrayForEach (worker, cJSON_GetObjectItemCaseSensitive(outcome, "workers"))
		fprintf(file, "  %-32s %7.1f%% %8.0f\n", text(worker, "name"),
			100 * smalti_json_number(worker, "busy") / makespan,
			smalti_json_number(worker, "tasks"));
}

/* Prints the memories. One that cannot hold all moves data out and in again, which the makespan includes. */
static void print_memories(const cJSON *outcome, FILE *file)
{
	static const double gibi = 1 << 30, giga = 1e9;
	const cJSON *memory;
	int index = 0;
	fprintf(file, "  %-16s %11s %11s %11s %11s %11s\n", "memory", "peak", "of", "needed", "received",
		"sent");
	cJSON_ArrayForEach (memory, cJSON_GetObjectItemCaseSensitive(outcome, "memories")) {
		char name[16] = "main";
		if (index)
			snprintf(name, sizeof(name), "GPU %d", index - 1);
		fprintf(file, "  %-16s", name);
		if (index)
			fprintf(file, " %7.2f GiB %7.2f GiB", smalti_json_number(memory, "peak") / gibi,
				smalti_json_number(memory, "limit") / gibi);
		if (index && cJSON_HasObjectItem(memory, "needed"))
			fprintf(file, " %7.2f GiB", smalti_json_number(memory, "needed") / gibi);
		else if (index)
			fprintf(file, " %11s", "");
		else
			fprintf(file, " %11s %11s %11s", "", "", "");
		fprintf(file, " %8.3f GB %8.3f GB\n", smalti_json_number(memory, "to") / giga,
			smalti_json_number(memory, "from") / giga);
		index++;
	}
}

/* Prints what the first GPU with too little memory needs. */
static void print_shortage(const cJSON *outcome, FILE *file)
{
	static const double gibi = 1 << 30;
	const bool blocking = cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(outcome, "blocking"));
	const cJSON *memory;
	int index = 0;
	cJSON_ArrayForEach (memory, cJSON_GetObjectItemCaseSensitive(outcome, "memories")) {
		const double needed = smalti_json_number(memory, "needed"),
			     limit = smalti_json_number(memory, "limit");
		if (index++ && needed > limit) {
			fprintf(file, "  %s: GPU %d needs %.2f GiB and has %.2f GiB%s\n",
				blocking ? "out of memory" : "does not fit", index - 2, needed / gibi,
				limit / gibi,
				blocking ? "" : "; what there is no room for is moved out and in again");
			return;
		}
	}
}

int smalti_simulation_print(const cJSON *outcome, double seconds, FILE *file, struct smalti_error *error)
{
	if (!cJSON_HasObjectItem(outcome, "makespan"))
		return smalti_fail(error, SMALTI_EFORMAT, "the simulator's answer has no makespan");
	const char *strategy = text(outcome, "strategy");
	const double tasks = smalti_json_number(outcome, "tasks");
	fprintf(file, "%s, %s%s%s: %.0f tasks, %.3f TFLOP, simulated in %.1f s (%.0f tasks a second)\n",
		text(outcome, "machine"), text(outcome, "sched"), *strategy ? ", " : "", strategy, tasks,
		smalti_json_number(outcome, "flops") * 1e-12, seconds, tasks / seconds);
	print_times(outcome, file);
	print_workers(outcome, file);
	print_memories(outcome, file);
	print_shortage(outcome, file);
	return 0;
}

static int is_machine(const struct dirent *entry)
{
	return smalti_stem(entry->d_name, ".json") > 0;
}

static int print_machine(const char *path, const char *file_name, FILE *file, struct smalti_error *error)
{
	struct smalti_simulated_machine machine;
	if (smalti_machine_read(path, &machine, error) < 0)
		return -1;
	fprintf(file, "%-21.*s %2lld CPU%s", (int)strlen(file_name) - 5, file_name,
		(long long)machine.cpu.count, smalti_plural(machine.cpu.count));
	for (int kind = 0; kind < machine.gpu_kinds; kind++)
		fprintf(file, ", %lld x %s %.0f GiB", (long long)machine.gpu[kind].count,
			machine.gpu[kind].name, machine.gpu[kind].memory / (1 << 30));
	if (machine.nvswitch.bandwidth > 0 || machine.nvlink.bandwidth > 0)
		fputs(", NVLink", file);
	if (machine.nodes > 1)
		fprintf(file, ", %lld nodes", (long long)machine.nodes);
	fputc('\n', file);
	return 0;
}

int smalti_machines_print(FILE *file, struct smalti_error *error)
{
	char directory[PATH_MAX];
	struct dirent **entries;
	int status = 0;
	smalti_find_shipped("machines", directory);
	const int count = scandir(directory, &entries, is_machine, versionsort);
	if (count < 0)
		return smalti_fail_errno(error, "%s: cannot be read", directory);
	for (int i = 0; i < count; i++) {
		SCOPED(free) char *path = smalti_format(error, "%s/%s", directory, entries[i]->d_name);
		if (status == 0)
			status = path ? print_machine(path, entries[i]->d_name, file, error) : -1;
		free(entries[i]);
	}
	free(entries);
	return status;
}
