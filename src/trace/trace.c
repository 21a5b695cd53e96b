/* SPDX-License-Identifier: Apache-2.0 */
#include "trace/trace.h"
#include "base/file.h"
#include "host/pool.h"
#include "ranks/ranks.h"
#include "rt/device_use.h"
#include "rt/place_facts.h"
#include "rt/places.h"
#include "rt/session.h"
#include "rt/simulation.h"
#include "rt/task_message.h"
#include "rt/transfers.h"
#include "trace/order.h"
#include "trace/tile_uses.h"

#include <math.h>

#include <starpu.h>

enum { REQUEST_LENGTH = 64 };

struct event {
	const char *name;                          /* an op's or a fusion's, which are static */
	double start, end, fetch_start, fetch_end; /* microseconds of StarPU's clock */
	double submitted;                          /* when it was inserted */
	double ready;                              /* when everything that the task waited for had ended */
	int64_t number;
	uint32_t key; /* of everything that its time depends on */
	double flops, bytes;
	struct smalti_position position;
	int64_t tiles, tasks; /* bytes in use and tasks in flight at its end */
	int64_t device;       /* used bytes of its device's memory; 0 on a CPU */
	char request[REQUEST_LENGTH];
};

/* The events of one worker, which writes them alone. */
struct row {
	struct event *events;
	double *costs; /* expected microseconds of each event at each place; NAN: the task cannot run there */
	int64_t count;
	int64_t lost; /* events without memory */
};

/* The bytes that came to a place. */
struct arrival {
	char request[REQUEST_LENGTH];
	int64_t stage; /* PLANNED: the plan of a pass */
	int place;
	double bytes[SMALTI_TRANSFER_KINDS];
};

enum { PLANNED = -1 };

struct smalti_trace {
	struct smalti_session *session;
	struct smalti_writer *writer;
	int workers, places;
	struct smalti_task_order *order;
	struct smalti_tile_uses *uses; /* NULL: there is one place */
	struct row *rows;
	pthread_mutex_t mutex; /* guards what follows */
	struct arrival *arrivals;
	int64_t arrival_count, arrivals_lost; /* arrivals, and those without memory */
};

int smalti_trace_start(struct smalti_trace *trace, struct smalti_error *error)
{
	trace->workers = (int)starpu_worker_get_count();
	trace->places = smalti_places_count(trace->session->places);
	trace->rows = smalti_calloc(trace->workers, sizeof(*trace->rows), error);
	trace->uses = trace->places > 1 ? smalti_tile_uses_new(error) : NULL;
	if (!trace->rows || (trace->places > 1 && !trace->uses))
		return -1;
	starpu_profiling_status_set(STARPU_PROFILING_ENABLE);
	return 0;
}

static struct event *next_event(struct smalti_trace *trace, struct row *row)
{
	const size_t costs = (size_t)trace->places * sizeof(*row->costs);
	if (smalti_grow(&row->events, row->count, sizeof(*row->events), NULL) == 0 &&
	    smalti_grow(&row->costs, row->count, costs, NULL) == 0)
		return &row->events[row->count++];
	row->lost++;
	return NULL;
}

static void expect(const struct smalti_trace *trace, struct starpu_task *task, double *costs)
{
	for (int place = 0; place < trace->places; place++) {
		const int worker = smalti_places_worker(trace->session->places, place, 0);
		const bool can =
		    worker >= 0 && (task->where & STARPU_WORKER_TO_MASK(starpu_worker_get_type(worker)));
		costs[place] =
		    can ? starpu_task_worker_expected_length(task, (unsigned)worker, 0, 0) : (double)NAN;
	}
}

static void uses(void *user, const struct smalti_tile *tile, enum smalti_access access)
{
	const struct smalti_trace *trace = user;
	smalti_task_order_uses(trace->order, tile->number, access);
	if (trace->uses)
		smalti_tile_uses_add(trace->uses, tile, access);
}

static void inserts(void *user, struct starpu_task *task)
{
	const struct smalti_trace *trace = user;
	struct smalti_message *message = task->cl_arg;
	message->traced = smalti_task_order_inserts(trace->order);
	if (trace->uses)
		smalti_tile_uses_insert(trace->uses);
}

/* Returns what its operations read and write. */
static double bytes_of(const struct smalti_message *message)
{
	double bytes = 0;
	for (int i = 0; i < message->steps; i++)
		bytes += smalti_step_op(&message->step[i])->bytes(message->step[i].arguments);
	return bytes;
}

/* Records a task, before its time updates the predictions. */
static void ended(void *user, struct starpu_task *task, int worker)
{
	(void)worker;
	struct smalti_trace *trace = user;
	const struct smalti_message *message = task->cl_arg;
	struct smalti_pool_state pool;
	const struct starpu_profiling_task_info *info = task->profiling_info;
	if (!info || info->workerid < 0 || info->workerid >= trace->workers)
		return;
	struct row *row = &trace->rows[info->workerid];
	struct event *event = next_event(trace, row);
	if (!event)
		return;
	expect(trace, task, row->costs + (row->count - 1) * trace->places);
	event->number = message->traced;
	event->key = smalti_message_key(message);
	event->ready = starpu_timing_timespec_to_us((struct timespec *)&info->push_start_time);
	event->submitted = starpu_timing_timespec_to_us((struct timespec *)&info->submit_time);
	event->name = task->name;
	event->start = starpu_timing_timespec_to_us((struct timespec *)&info->start_time);
	event->end = starpu_timing_timespec_to_us((struct timespec *)&info->end_time);
	event->fetch_start = starpu_timing_timespec_to_us((struct timespec *)&info->acquire_data_start_time);
	event->fetch_end = starpu_timing_timespec_to_us((struct timespec *)&info->acquire_data_end_time);
	event->flops = task->flops;
	event->bytes = bytes_of(message);
	event->position = message->position;
	smalti_pool_state(trace->session->pool, &pool);
	event->tiles = pool.used;
	const struct smalti_device *device = smalti_session_device(trace->session, info->workerid);
	event->device = device ? smalti_device_in_use(device) : 0;
	event->tasks = smalti_throttle_tasks(&trace->session->throttle);
	snprintf(event->request, sizeof(event->request), "%s", message->task_group->name);
}

static void add_arrival(struct smalti_trace *trace, const char *request, int64_t stage, int place,
			const double *bytes)
{
	double sum = 0;
	for (int kind = 0; kind < SMALTI_TRANSFER_KINDS; kind++)
		sum += bytes[kind];
	if (sum == 0)
		return;
	if (smalti_grow(&trace->arrivals, trace->arrival_count, sizeof(*trace->arrivals), NULL) < 0) {
		trace->arrivals_lost++;
		return;
	}
	struct arrival *arrival = &trace->arrivals[trace->arrival_count++];
	snprintf(arrival->request, sizeof(arrival->request), "%s", request);
	arrival->stage = stage;
	arrival->place = place;
	memcpy(arrival->bytes, bytes, sizeof(arrival->bytes));
}

/* Records what came to places for the group. */
static void leaves(void *user, const struct smalti_task_group *task_group)
{
	struct smalti_trace *trace = user;
	const struct smalti_task_transfers *transfers = &task_group->transfers;
	HOLD_MUTEX(&trace->mutex);
	for (int place = 0; transfers->planned && place < transfers->places; place++)
		add_arrival(trace, task_group->name, PLANNED, place,
			    transfers->planned + place * SMALTI_TRANSFER_KINDS);
	for (int64_t stage = 0; stage < transfers->stages; stage++)
		for (int place = 0; place < transfers->places; place++)
			add_arrival(trace, task_group->name, stage, place,
				    smalti_task_transfers_at(transfers, stage, place));
}

struct smalti_trace *smalti_trace_new(struct smalti_session *session, const char *path,
				      struct smalti_error *error)
{
	struct smalti_trace *trace = smalti_calloc(1, sizeof(*trace), error);
	if (!trace)
		return NULL;
	pthread_mutex_init(&trace->mutex, NULL);
	const int rank = smalti_ranks_own();
	SCOPED(free) char *other = rank ? smalti_format(error, "%s.%d", path, rank) : NULL;
	trace->session = session;
	trace->order = smalti_task_order_new(error);
	if (!trace->order) {
		smalti_trace_free(trace);
		return NULL;
	}
	if (rank == 0 || other) /* now, so that a bad path fails before the work */
		trace->writer = smalti_writer_open(rank ? other : path, error);
	if (trace->writer) {
		session->observers[session->observer_count++] = (struct smalti_observer){
		    .uses = uses, .inserts = inserts, .ended = ended, .leaves = leaves, .user = trace};
		return trace;
	}
	smalti_error_prefix(error, "trace");
	smalti_trace_free(trace);
	return NULL;
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
		int64_t value, min;
	} parts[] = {
	    {"stage", position->stage, 1}, {"layer", position->layer, 0}, {"band", position->band, 0}};
	for (size_t i = 0; i < COUNT_OF(parts); i++)
		if (parts[i].value >= parts[i].min)
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

static void write_order(FILE *file, const struct smalti_trace *trace, const struct event *event,
			const double *costs)
{
	int64_t count = 0;
	const int64_t *before =
	    event->number < 0 ? NULL : smalti_task_order_before(trace->order, event->number, &count);
	fprintf(file,
		",\"number\":%" PRId64 ",\"key\":%" PRIu32 ",\"submitted\":%.3f,\"ready\":%.3f,\"after\":[",
		event->number, event->key, event->submitted, event->ready);
	for (int64_t i = 0; i < count; i++)
		fprintf(file, "%s%" PRId64, i ? "," : "", before[i]);
	fputs("],\"expected\":[", file);
	for (int place = 0; place < trace->places; place++) {
		fputs(place ? "," : "", file);
		if (isnan(costs[place]))
			fputs("null", file);
		else
			fprintf(file, "%.3f", costs[place]);
	}
	fputc(']', file);
	if (trace->uses)
		smalti_tile_uses_write(trace->uses, event->number, file);
}

static void write_event(FILE *file, const struct smalti_trace *trace, int worker, int64_t index)
{
	const struct row *row = &trace->rows[worker];
	const struct event *event = &row->events[index];
	enum { SHORTEST_FETCH = 20 }; /* microseconds; less is StarPU's bookkeeping, not a transfer */
	double duration = event->end - event->start;
	fprintf(file,
		",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"task\",\"name\":",
		worker, event->start, duration);
	write_text(file, event->name);
	fputs(",\"args\":{\"request\":", file);
	write_text(file, event->request);
	write_position(file, &event->position);
	write_order(file, trace, event, row->costs + index * trace->places);
	fprintf(file, ",\"flops\":%.0f,\"bytes\":%.0f,\"gflops_per_second\":%.3f}}", event->flops,
		event->bytes, duration > 0 ? event->flops / duration * 1e-3 : 0.0);
	if (event->fetch_end - event->fetch_start >= SHORTEST_FETCH)
		fprintf(file,
			",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"transfer\","
			"\"name\":\"transfer\"}",
			worker, event->fetch_start, event->fetch_end - event->fetch_start);
	write_counters(file, worker, event);
}

static void write_row(FILE *file, const struct smalti_trace *trace, int worker)
{
	const struct row *row = &trace->rows[worker];
	char name[SMALTI_WORKER_NAME];
	smalti_session_worker_name(worker, name);
	fprintf(file,
		",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%d,\"name\":\"thread_name\",\"args\":{\"name\":", worker);
	write_text(file, name);
	fprintf(file, ",\"lost_events\":%lld}}", (long long)row->lost);
	for (int64_t i = 0; i < row->count; i++)
		write_event(file, trace, worker, i);
}

/* Writes the sums of transfers over each link. */
static void write_transfers(FILE *file, struct smalti_session *session)
{
	int count = 0;
	const struct smalti_transfer *transfers = smalti_transfers(session, &count);
	const char *between = "";
	fputs("\n],\"transfers\":[", file);
	for (int i = 0; i < count; i++) {
		const struct smalti_transfer *link = &transfers[i];
		if (link->count == 0)
			continue;
		fprintf(file, "%s{\"from\":%d,\"to\":%d,\"bytes\":%lld,\"count\":%lld}", between, link->from,
			link->to, (long long)link->bytes, (long long)link->count);
		between = ",";
	}
}

static void write_arrival(FILE *file, const struct smalti_session *session, const struct arrival *arrival)
{
	char place[SMALTI_WORKER_NAME];
	smalti_session_place_name(session, arrival->place, place);
	fputs("{\"request\":", file);
	write_text(file, arrival->request);
	if (arrival->stage == PLANNED)
		fputs(",\"planned\":true", file);
	else
		fprintf(file, ",\"stage\":%lld", (long long)arrival->stage);
	fputs(",\"place\":", file);
	write_text(file, place);
	for (int kind = 0; kind < SMALTI_TRANSFER_KINDS; kind++)
		if (arrival->bytes[kind] > 0)
			fprintf(file, ",\"%s\":%.0f", smalti_transfer_kind_names[kind], arrival->bytes[kind]);
	fputs("}", file);
}

static void write_arrivals(FILE *file, const struct smalti_trace *trace)
{
	fprintf(file, "],\"lost_arrivals\":%lld,\"arrivals\":[", (long long)trace->arrivals_lost);
	for (int64_t i = 0; i < trace->arrival_count; i++) {
		fputs(i ? ",\n" : "\n", file);
		write_arrival(file, trace->session, &trace->arrivals[i]);
	}
}

static void write_devices(FILE *file, struct smalti_session *session)
{
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	SCOPED(cJSON_Delete)
	cJSON *devices = smalti_devices_use_json(uses, smalti_devices_use(session, uses));
	SCOPED(free) char *text = devices ? cJSON_PrintUnformatted(devices) : NULL;
	fprintf(file, "],\"devices\":%s", text ? text : "[]");
}

static void write_places(FILE *file, const struct smalti_trace *trace)
{
	const struct smalti_places *places = trace->session->places;
	fputs(",\"places\":[", file);
	for (int place = 0; place < trace->places; place++) {
		int worker = smalti_places_worker(places, place, 0);
		fprintf(file, "%s[", place ? "," : "");
		for (const char *comma = ""; worker >= 0;
		     comma = ",", worker = smalti_places_worker(places, place, worker + 1))
			fprintf(file, "%s%d", comma, worker);
		fputc(']', file);
	}
	fputc(']', file);
}

/* Writes the bytes of each place of this process. */
static void write_memories(FILE *file, const struct smalti_trace *trace)
{
	fputs(",\"memories\":[", file);
	for (int place = 0; place < trace->places; place++)
		fprintf(file, "%s%" PRId64, place ? "," : "",
			place ? smalti_place_facts_memory(trace->session, place) : trace->session->memory);
	fputc(']', file);
}

/* Writes the links between places of this process, by StarPU's measurement, in 10^9 bytes a second and µs. A
 * link that was too fast for StarPU's clock has no speed, and is left out. */
static void write_links(FILE *file, const struct smalti_trace *trace)
{
	const struct smalti_places *places = trace->session->places;
	const char *between = "";
	fputs(",\"links\":[", file);
	for (int from = 0; from < trace->places; from++)
		for (int to = 0; to < trace->places; to++) {
			const unsigned a = smalti_places_node(places, from),
				       b = smalti_places_node(places, to);
			if (a == b || !isfinite(starpu_transfer_bandwidth(a, b)))
				continue;
			fprintf(file, "%s{\"from\":%d,\"to\":%d,\"gbs\":%.6g,\"us\":%.6g}", between, from, to,
				1e-3 * starpu_transfer_bandwidth(a, b), starpu_transfer_latency(a, b));
			between = ",";
		}
	fputc(']', file);
}

/* Writes how many ranks there are, and the slowest link between two of them. */
static void write_ranks(FILE *file, const struct smalti_session *session)
{
	const struct smalti_place_facts *facts = session->rank_facts;
	struct smalti_link_fact slowest = {(double)INFINITY, 0};
	if (!facts)
		return;
	for (int from = 0; from < facts->count; from++)
		for (int to = 0; to < from; to++) {
			const struct smalti_link_fact *link = &facts->link[from * facts->count + to];
			slowest.bandwidth = fmin(slowest.bandwidth, link->bandwidth);
			slowest.latency = fmax(slowest.latency, link->latency);
		}
	fprintf(file, ",\"ranks\":{\"count\":%d,\"gbs\":%.6g,\"us\":%.6g}", facts->count,
		1e-9 * slowest.bandwidth, 1e6 * slowest.latency);
}

static void write_bound(FILE *file)
{
	const double seconds = smalti_simulation_transfers(), host = smalti_simulation_host();
	if (!isnan(seconds))
		fprintf(file, ",\"transfer_bound\":%.9g", seconds);
	if (host > 0)
		fprintf(file, ",\"host_gbs\":%.6g", 1e-9 * host);
}

int smalti_trace_write(struct smalti_trace *trace, struct smalti_error *error)
{
	FILE *file = smalti_writer_stream(trace->writer);
	fputs("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
	      "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"smalti\"}}",
	      file);
	for (int worker = 0; worker < trace->workers; worker++)
		write_row(file, trace, worker);
	write_transfers(file, trace->session);
	write_arrivals(file, trace);
	write_devices(file, trace->session);
	write_places(file, trace);
	write_memories(file, trace);
	write_links(file, trace);
	write_ranks(file, trace->session);
	if (trace->uses)
		smalti_tile_uses_write_tiles(trace->uses, file);
	write_bound(file);
	fputs("}\n", file);
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
		free(trace->rows[worker].events), free(trace->rows[worker].costs);
	free(trace->rows);
	free(trace->arrivals);
	pthread_mutex_destroy(&trace->mutex);
	smalti_task_order_free(trace->order);
	smalti_tile_uses_free(trace->uses);
	smalti_writer_abort(trace->writer);
	free(trace);
}
