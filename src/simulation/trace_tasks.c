/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/trace_tasks.h"
#include "simulation/trace_events.h"

#include <math.h>

bool smalti_traced_device(const char *worker)
{
	return strncmp(worker, "CPU", 3) != 0;
}

static void read_worker(const struct smalti_trace_event *event, struct smalti_traced_machine *machine)
{
	if (!event->name || !(event->worker >= 0 && event->worker < SMALTI_TRACE_WORKERS))
		return;
	snprintf(machine->worker[(int)event->worker], sizeof(machine->worker[0]), "%s", event->name);
	machine->workers = (int)fmax(machine->workers, event->worker + 1);
}

/* Returns how late a worker began a ready task; its first one, which may have waited for others, is not late.
 * Its tasks come in order. */
static double late_by(const struct smalti_traced_machine *machine, int worker, double start, double ready)
{
	const double ended = machine->ended[worker];
	return ended > 0 && ready >= 0 ? 1e-6 * fmax(0, start - fmax(ended, ready)) : 0;
}

static int read_task(const struct smalti_trace_reader *reader, struct smalti_traced_machine *machine,
		     const struct smalti_trace_event *event, struct smalti_error *error)
{
	const double key = smalti_json_number(event->arguments, "key"), worker = event->worker;
	struct smalti_traced_task task = {
	    .name = event->name,
	    .seconds = 1e-6 * event->duration,
	    .flops = event->flops,
	    .bytes = smalti_json_number(event->arguments, "bytes"),
	};
	if (!task.name || !(key >= 0 && key <= UINT32_MAX && worker >= 0 && worker < machine->workers &&
			    task.seconds >= 0 && task.flops >= 0 && task.bytes >= 0))
		return smalti_fail(
		    error, SMALTI_EFORMAT,
		    "a task without name, key, worker, time, flops or bytes: an older program wrote it");
	task.key = (uint32_t)key;
	task.worker = (int)worker;
	task.late = late_by(machine, task.worker, event->start, event->ready);
	machine->ended[task.worker] = event->start + 1e6 * task.seconds;
	return reader->on_task(reader->user, machine, &task, error);
}

static int read_trace(const cJSON *trace, const struct smalti_trace_reader *reader,
		      struct smalti_error *error)
{
	SCOPED(free) struct smalti_traced_machine *machine = smalti_calloc(1, sizeof(*machine), error);
	int64_t tasks = 0;
	const cJSON *item;
	if (!machine)
		return -1;
	cJSON_ArrayForEach (item, smalti_trace_events(trace)) {
		const struct smalti_trace_event event = smalti_trace_event(item);
		if (event.kind == SMALTI_TRACE_WORKER)
			read_worker(&event, machine);
		if (event.kind != SMALTI_TRACE_TASK)
			continue;
		if (read_task(reader, machine, &event, error) < 0)
			return -1;
		tasks++;
	}
	if (tasks == 0)
		return smalti_fail(error, SMALTI_EFORMAT, "no tasks");
	machine->memories = cJSON_GetObjectItemCaseSensitive(trace, "memories");
	machine->links = cJSON_GetObjectItemCaseSensitive(trace, "links");
	machine->ranks = cJSON_GetObjectItemCaseSensitive(trace, "ranks");
	return reader->on_machine ? reader->on_machine(reader->user, machine, error) : 0;
}

static int read_file(const char *path, const struct smalti_trace_reader *reader, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *trace = smalti_trace_open(path, error);
	if (!trace)
		return -1;
	const int status = read_trace(trace, reader, error);
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
