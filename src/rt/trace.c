/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/trace.h"
#include "base/file.h"
#include "rt/pool.h"
#include "rt/ranks.h"
#include "rt/session.h"
#include "rt/transfers.h"

#include <starpu.h>

enum { REQUEST_LENGTH = 32 };

struct event {
	const char *name;                          /* an op's, which is static */
	double start, end, fetch_start, fetch_end; /* microseconds of StarPU's clock */
	double flops;
	struct smalti_position position;
	int64_t tiles, tasks; /* bytes in use and tasks in flight at its end */
	int64_t device;       /* bytes of its device's memory that StarPU knows to be in use; 0 on a CPU */
	char request[REQUEST_LENGTH];
};

/* One per worker, written by that worker alone. */
struct row {
	struct event *events;
	int64_t count;
	int64_t lost; /* for want of memory */
};

struct smalti_trace {
	struct smalti_session *session;
	struct smalti_writer *writer;
	double began, seconds; /* by StarPU's clock; from then to when it is written */
	int workers;
	struct row *rows;
};

struct smalti_trace *smalti_trace_new(struct smalti_session *session, const char *path,
				      struct smalti_error *error)
{
	struct smalti_trace *trace = smalti_calloc(1, sizeof(*trace), error);
	if (!trace)
		return NULL;
	const int rank = smalti_ranks_own();
	SCOPED(free) char *other = rank ? smalti_format(error, "%s.%d", path, rank) : NULL;
	trace->session = session;
	if (rank == 0 || other) /* now: a bad path should fail before the work */
		trace->writer = smalti_writer_open(rank ? other : path, error);
	if (trace->writer)
		return trace;
	smalti_error_prefix(error, "trace");
	smalti_trace_free(trace);
	return NULL;
}

int smalti_trace_start(struct smalti_trace *trace, struct smalti_error *error)
{
	trace->workers = (int)starpu_worker_get_count();
	trace->rows = smalti_calloc(trace->workers, sizeof(*trace->rows), error);
	if (!trace->rows)
		return -1;
	trace->began = 1e-6 * starpu_timing_now();
	starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
	return 0;
}

static struct event *next_event(struct row *row)
{
	if (smalti_grow(&row->events, row->count, sizeof(*row->events), NULL) == 0)
		return &row->events[row->count++];
	row->lost++;
	return NULL;
}

void smalti_trace_task(struct smalti_trace *trace, const struct starpu_task *task, const char *request,
		       const struct smalti_position *position)
{
	struct smalti_pool_state pool;
	const struct starpu_profiling_task_info *info = task->profiling_info;
	if (!info || info->workerid < 0 || info->workerid >= trace->workers)
		return;
	struct event *event = next_event(&trace->rows[info->workerid]);
	if (!event)
		return;
	event->name = task->name;
	event->start = starpu_timing_timespec_to_us((struct timespec *)&info->start_time);
	event->end = starpu_timing_timespec_to_us((struct timespec *)&info->end_time);
	event->fetch_start = starpu_timing_timespec_to_us((struct timespec *)&info->acquire_data_start_time);
	event->fetch_end = starpu_timing_timespec_to_us((struct timespec *)&info->acquire_data_end_time);
	event->flops = task->flops;
	event->position = *position;
	smalti_pool_state(trace->session->pool, &pool);
	event->tiles = pool.used;
	const unsigned node = starpu_worker_get_memory_node((unsigned)info->workerid);
	event->device = node == STARPU_MAIN_RAM ? 0 : (int64_t)starpu_memory_get_used(node);
	event->tasks = smalti_throttle_tasks(&trace->session->throttle);
	snprintf(event->request, sizeof(event->request), "%s", request);
}

static void write_text(FILE *file, const char *text)
{
	fputc('"', file);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c == '"' || *c == '\\')
			fprintf(file, "\\%c", *c);
		else if (*c < 0x20)
			fprintf(file, "\\u%04x", *c);
		else
			fputc(*c, file);
	fputc('"', file);
}

static void write_position(FILE *file, const struct smalti_position *position)
{
	const struct {
		const char *name;
		int64_t value, least;
	} parts[] = {
	    {"stage", position->stage, 1}, {"layer", position->layer, 0}, {"band", position->band, 0}};
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (parts[i].value >= parts[i].least)
			fprintf(file, ",\"%s\":%lld", parts[i].name, (long long)parts[i].value);
}

static void write_counters(FILE *file, int worker, const struct event *event)
{
	if (event->device)
		fprintf(
		    file,
		    ",\n{\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"name\":\"memory of device %u, MiB\",\"args\":"
		    "{\"in use\":%.3f}}",
		    event->end, starpu_worker_get_memory_node((unsigned)worker),
		    (double)event->device / (1 << 20));
	fprintf(file,
		",\n{\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"name\":\"tiles, MiB\",\"args\":{\"in use\":%.3f}}"
		",\n{\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"name\":\"tasks\",\"args\":{\"in flight\":%lld}}",
		event->end, (double)event->tiles / (1 << 20), event->end, (long long)event->tasks);
}

static void write_event(FILE *file, int worker, const struct event *event)
{
	enum { SHORTEST_FETCH = 20 }; /* microseconds; below it is StarPU's bookkeeping, not a transfer */
	double duration = event->end - event->start;
	fprintf(file,
		",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"task\",\"name\":",
		worker, event->start, duration);
	write_text(file, event->name);
	fputs(",\"args\":{\"request\":", file);
	write_text(file, event->request);
	write_position(file, &event->position);
	fprintf(file, ",\"flops\":%.0f,\"gflops_per_second\":%.3f}}", event->flops,
		duration > 0 ? event->flops / duration * 1e-3 : 0.0);
	if (event->fetch_end - event->fetch_start >= SHORTEST_FETCH)
		fprintf(file,
			",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"transfer\","
			"\"name\":\"transfer\"}",
			worker, event->fetch_start, event->fetch_end - event->fetch_start);
	write_counters(file, worker, event);
}

static void write_row(FILE *file, int worker, const struct row *row)
{
	char name[SMALTI_WORKER_NAME];
	smalti_session_worker_name(worker, name);
	fprintf(file,
		",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", worker);
	write_text(file, name);
	fprintf(file, ",\"lost_events\":%lld}}", (long long)row->lost);
	for (int64_t i = 0; i < row->count; i++)
		write_event(file, worker, &row->events[i]);
}

/* What went from memory to memory, all together. */
static void write_transfers(FILE *file, const struct smalti_transfer *transfers, int count)
{
	fputs("\n],\"transfers\":[", file);
	for (int i = 0; i < count; i++)
		fprintf(file, "%s{\"from\":%d,\"to\":%d,\"bytes\":%lld,\"count\":%lld}", i ? "," : "",
			transfers[i].from, transfers[i].to, (long long)transfers[i].bytes,
			(long long)transfers[i].count);
}

static void write_device(FILE *file, const struct smalti_trace *trace, int worker, int node,
			 const struct smalti_transfer *transfers, int count)
{
	const struct row *row = &trace->rows[worker];
	int64_t to = 0, from = 0, most = 0;
	for (int i = 0; i < count; i++) {
		to += transfers[i].to == node ? transfers[i].bytes : 0;
		from += transfers[i].from == node ? transfers[i].bytes : 0;
	}
	for (int64_t i = 0; i < row->count; i++)
		most = smalti_max(most, row->events[i].device);
	fprintf(file, "{\"tid\":%d,\"node\":%d,\"busy\":%.6f,", worker, node,
		smalti_session_busy(trace->session, worker) / trace->seconds);
	fprintf(file, "\"bytes_to\":%lld,\"bytes_from\":%lld,\"peak_memory\":%lld}", (long long)to,
		(long long)from, (long long)most);
}

/* The share of the time that each was busy, what was moved, and the most of its memory in use at a task's
 * end. */
static void write_devices(FILE *file, const struct smalti_trace *trace,
			  const struct smalti_transfer *transfers, int count)
{
	const char *between = "";
	fputs("],\"devices\":[", file);
	for (int worker = 0; worker < trace->workers; worker++) {
		const int node = (int)starpu_worker_get_memory_node((unsigned)worker);
		if (node == STARPU_MAIN_RAM)
			continue;
		fputs(between, file);
		write_device(file, trace, worker, node, transfers, count);
		between = ",";
	}
}

int smalti_trace_write(struct smalti_trace *trace, struct smalti_error *error)
{
	FILE *file = smalti_writer_stream(trace->writer);
	struct smalti_transfer transfers[SMALTI_MOST_LINKS];
	const int count = smalti_transfers_take(transfers);
	trace->seconds = 1e-6 * starpu_timing_now() - trace->began;
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
	      "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"smalti\"}}",
	      file);
	for (int worker = 0; worker < trace->workers; worker++)
		write_row(file, worker, &trace->rows[worker]);
	write_transfers(file, transfers, count);
	write_devices(file, trace, transfers, count);
	fputs("]}\n", file);
	const int status = smalti_writer_commit(trace->writer, error);
	trace->writer = NULL;
	if (status)
		smalti_error_prefix(error, "trace");
	return status;
}

void smalti_trace_free(struct smalti_trace *trace)
{
	if (!trace)
		return;
	for (int worker = 0; trace->rows && worker < trace->workers; worker++)
		free(trace->rows[worker].events);
	free(trace->rows);
	smalti_writer_abort(trace->writer);
	free(trace);
}
