/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/trace_tasks.h"
#include "base/file.h"

#include <math.h>

enum { LARGEST_TRACE = 1 << 30 };

static bool is(const cJSON *event, const char *key, const char *value)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, key));
	return text && strcmp(text, value) == 0;
}

bool smalti_traced_device(const char *worker)
{
	return strncmp(worker, "CPU", 3) != 0;
}

/* Workers' names are in front of their tasks. */
static void read_worker(const cJSON *event, struct smalti_traced_machine *machine)
{
	const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(event, "args");
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(arguments, "name"));
	const double worker = smalti_json_number(event, "tid");
	if (!is(event, "name", "thread_name") || !name || !(worker >= 0 && worker < SMALTI_TRACE_WORKERS))
		return;
	snprintf(machine->worker[(int)worker], sizeof(machine->worker[0]), "%s", name);
	machine->workers = (int)fmax(machine->workers, worker + 1);
}

/* A worker's tasks are in their order. What its first one waited for is not the worker's doing. */
static double late_by(const struct smalti_traced_machine *machine, int worker, double start, double ready)
{
	const double ended = machine->ended[worker];
	return ended > 0 && ready >= 0 ? 1e-6 * fmax(0, start - fmax(ended, ready)) : 0;
}

static int read_task(const struct smalti_trace_reader *reader, struct smalti_traced_machine *machine,
		     const cJSON *event, struct smalti_error *error)
{
	const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(event, "args");
	const double key = smalti_json_number(arguments, "key"), worker = smalti_json_number(event, "tid");
	struct smalti_traced_task task = {
	    .name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "name")),
	    .seconds = 1e-6 * smalti_json_number(event, "dur"),
	    .flops = smalti_json_number(arguments, "flops"),
	    .bytes = smalti_json_number(arguments, "bytes"),
	};
	if (!task.name || !(key >= 0 && key <= UINT32_MAX && worker >= 0 && worker < machine->workers &&
			    task.seconds >= 0 && task.flops >= 0 && task.bytes >= 0))
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "a task without name, key, worker, time, flops or bytes: an older program wrote it");
	task.key = (uint32_t)key;
	task.worker = (int)worker;
	task.late = late_by(machine, task.worker, smalti_json_number(event, "ts"),
			    smalti_json_number(arguments, "ready"));
	machine->ended[task.worker] = smalti_json_number(event, "ts") + 1e6 * task.seconds;
	return reader->on_task(reader->user, machine, &task, error);
}

static int read_trace(const cJSON *trace, const struct smalti_trace_reader *reader,
		      struct smalti_error *error)
{
	SCOPED(free) struct smalti_traced_machine *machine = smalti_calloc(1, sizeof(*machine), error);
	int64_t tasks = 0;
	const cJSON *event;
	if (!machine)
		return -1;
	cJSON_ArrayForEach (event, cJSON_GetObjectItemCaseSensitive(trace, "traceEvents")) {
		read_worker(event, machine);
		if (!is(event, "cat", "task"))
			continue;
		if (read_task(reader, machine, event, error) < 0)
			return -1;
		tasks++;
	}
	if (tasks == 0)
		return smalti_fail(error, SMALTI_EFORMAT, "no tasks");
	machine->memories = cJSON_GetObjectItemCaseSensitive(trace, "memories");
	machine->links = cJSON_GetObjectItemCaseSensitive(trace, "links");
	return reader->on_machine ? reader->on_machine(reader->user, machine, error) : 0;
}

static int read_file(const char *path, const struct smalti_trace_reader *reader, struct smalti_error *error)
{
	size_t length;
	SCOPED(free) char *text = smalti_file_read(path, LARGEST_TRACE, &length, error);
	if (!text)
		return -1;
	SCOPED(cJSON_Delete) cJSON *trace = cJSON_ParseWithLength(text, length);
	const int status =
	    trace ? read_trace(trace, reader, error) : smalti_fail(error, SMALTI_EFORMAT, "not JSON");
	if (status < 0)
		smalti_error_prefix(error, "%s", path);
	return status;
}

int smalti_traces_read(const char *files, const struct smalti_trace_reader *reader,
		       struct smalti_error *error)
{
	int status = 0;
	for (size_t length; status == 0 && *files; files += length + (files[length] == ',')) {
		length = strcspn(files, ",");
		SCOPED(free) char *path = smalti_format(error, "%.*s", (int)length, files);
		status = path ? read_file(path, reader, error) : -1;
	}
	return status;
}
