/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "base/json.h"
#include "rt/device_use.h"
#include "serve/serve.h"
#include "trace/recent.h"

#include <math.h>

static const unsigned statuses[SMALTI_SERVE_STATUSES] = {200, 400, 401, 403, 404, 405, 406, 411,
							 413, 414, 415, 429, 431, 500, 503, 505};
static const double bounds[SMALTI_SERVE_BUCKETS] = {0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800};

void smalti_serve_metrics_answer(struct smalti_serve_metrics *metrics, unsigned status)
{
	for (int i = 0; i < SMALTI_SERVE_STATUSES; i++)
		metrics->answers[i] += statuses[i] == status;
}

void smalti_serve_metrics_request(struct smalti_serve_metrics *metrics, double seconds)
{
	for (int i = 0; i < SMALTI_SERVE_BUCKETS; i++)
		metrics->buckets[i] += seconds <= bounds[i];
	metrics->requests++;
	metrics->seconds += seconds;
}

static void head(FILE *out, const char *name, const char *type, const char *help)
{
	fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void single(FILE *out, const char *name, const char *type, const char *help, double value)
{
	head(out, name, type, help);
	fprintf(out, "%s %.17g\n", name, value);
}

static void write_requests(FILE *out, const struct smalti_serve_metrics *metrics)
{
	head(out, "smalti_http_responses_total", "counter", "Answers by their status.");
	for (int i = 0; i < SMALTI_SERVE_STATUSES; i++)
		fprintf(out, "smalti_http_responses_total{code=\"%u\"} %" PRId64 "\n", statuses[i],
			metrics->answers[i]);
	head(out, "smalti_request_seconds", "histogram",
	     "Time from a request for images to its last image or failure.");
	for (int i = 0; i < SMALTI_SERVE_BUCKETS; i++)
		fprintf(out, "smalti_request_seconds_bucket{le=\"%g\"} %" PRId64 "\n", bounds[i],
			metrics->buckets[i]);
	fprintf(out, "smalti_request_seconds_bucket{le=\"+Inf\"} %" PRId64 "\n", metrics->requests);
	fprintf(out, "smalti_request_seconds_sum %.17g\nsmalti_request_seconds_count %" PRId64 "\n",
		metrics->seconds, metrics->requests);
}

static void write_workers(FILE *out, const struct smalti_session *session)
{
	head(out, "smalti_worker_busy_seconds_total", "counter", "Time in which a worker computed.");
	for (int worker = 0; worker < session->workers; worker++) {
		char name[SMALTI_WORKER_NAME];
		smalti_session_worker_name(worker, name);
		fprintf(out, "smalti_worker_busy_seconds_total{worker=\"%s\"} %.6f\n", name,
			smalti_session_busy(session, worker));
	}
}

static const struct device_metric {
	const char *name, *type, *help;
	const char *key; /* of smalti_device_use_fields */
} device_metrics[] = {
    {"smalti_device_memory_used_bytes", "gauge", "Memory in use at the end of the last task.", "used_memory"},
    {"smalti_device_memory_bytes", "gauge", "Memory that may be used.", "memory"},
    {"smalti_device_utilisation_ratio", "gauge", "Share of the last ten seconds in which any kernel ran.",
     "utilisation"},
    {"smalti_device_received_bytes_total", "counter", "What moved to the device.", "bytes_to"},
    {"smalti_device_sent_bytes_total", "counter", "What moved from the device.", "bytes_from"},
};

static const struct smalti_device_use_field *field_of(const char *key)
{
	const struct smalti_device_use_field *field = smalti_device_use_fields;
	while (strcmp(field->key, key) != 0)
		field++;
	return field;
}

static void write_device_metric(FILE *out, const struct device_metric *metric,
				const struct smalti_device_use *uses, int count)
{
	head(out, metric->name, metric->type, metric->help);
	for (int i = 0; i < count; i++) {
		const double value = smalti_device_use_value(&uses[i], field_of(metric->key));
		if (!isnan(value))
			fprintf(out, "%s{device=\"%s\"} %.17g\n", metric->name, uses[i].name, value);
	}
}

static void write_devices(FILE *out, struct smalti_session *session)
{
	static const double LATELY = 10; /* seconds */
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	const int count = smalti_devices_use_lately(session, smalti_wall_clock() - LATELY, uses);
	for (size_t i = 0; count && i < COUNT_OF(device_metrics); i++)
		write_device_metric(out, &device_metrics[i], uses, count);
}

static double resident_bytes(void)
{
	char line[128]; /* pages: all, resident, ... */
	const char *resident =
	    smalti_read_line("/proc/self/statm", line, sizeof(line)) ? strchr(line, ' ') : NULL;
	return resident ? (double)strtoll(resident, NULL, 10) * (double)sysconf(_SC_PAGESIZE) : 0;
}

/* Returns what was written into memory; NULL where there was none. */
static char *close_text(FILE *out, char **text)
{
	const bool failed = ferror(out);
	if (fclose(out) == 0 && !failed)
		return *text;
	free(*text);
	return NULL;
}

char *smalti_serve_metrics_text(struct smalti_server *server)
{
	const struct smalti_serve_metrics *metrics = &server->metrics;
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	if (!out)
		return NULL;
	write_requests(out, metrics);
	single(out, "smalti_images_total", "counter", "Images that were made.", (double)metrics->made);
	single(out, "smalti_images_failed_total", "counter", "Images that failed.", (double)metrics->failed);
	single(out, "smalti_images_dropped_total", "counter", "Images that nobody waited for any more.",
	       (double)metrics->dropped);
	single(out, "smalti_images_active", "gauge", "Images that are being made.", (double)server->active);
	single(out, "smalti_images_waiting", "gauge", "Images in the queue.", (double)server->queue.waiting);
	write_workers(out, server->session);
	write_devices(out, server->session);
	single(out, "process_resident_memory_bytes", "gauge", "Resident memory.", resident_bytes());
	single(out, "process_start_time_seconds", "gauge", "Start of the server since 1970.",
	       server->started);
	return close_text(out, &text);
}

enum { MAX_TASKS = 2000 };

static cJSON *list_workers(const struct smalti_session *session)
{
	cJSON *workers = cJSON_CreateArray();
	for (int worker = 0; worker < session->workers; worker++) {
		char name[SMALTI_WORKER_NAME];
		smalti_session_worker_name(worker, name);
		cJSON_AddItemToArray(workers, cJSON_CreateString(name));
	}
	return workers;
}

/* Writes tasks by hand, since they are asked for often: the names of operations need no escapes. */
static void write_tasks(FILE *out, const struct smalti_recent_task *tasks, int64_t count)
{
	for (int64_t i = 0; i < count; i++)
		fprintf(out, "%s[%d,\"%s\",%.6f,%.6f]", i ? "," : "", tasks[i].worker, tasks[i].name,
			tasks[i].began, tasks[i].ended);
}

char *smalti_serve_activity(const struct smalti_server *server, int64_t from)
{
	SCOPED(free) struct smalti_recent_task *tasks = smalti_calloc(MAX_TASKS, sizeof(*tasks), NULL);
	SCOPED(cJSON_Delete) cJSON *workers = list_workers(server->session);
	SCOPED(free) char *names = cJSON_PrintUnformatted(workers);
	char *text = NULL;
	size_t size;
	FILE *out = tasks && names ? open_memstream(&text, &size) : NULL;
	if (!out)
		return NULL;
	const int64_t count = smalti_recent_read(server->session->recent, &from, MAX_TASKS, tasks);
	fprintf(out, "{\"now\":%.6f,\"next\":%" PRId64 ",\"workers\":%s,\"tasks\":[", smalti_now(), from,
		names);
	write_tasks(out, tasks, count);
	fputs("]}\n", out);
	return close_text(out, &text);
}
