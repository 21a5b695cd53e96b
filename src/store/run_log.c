/* SPDX-License-Identifier: Apache-2.0 */
#include "store/run_log.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/process.h"
#include "base/utf8.h"

/* Captions of LENGTHS - 1 tokens and more are counted together; so are images past BINS bins (no table has
 * more than 40). */
enum { HOST = 64, ATTEMPTS = 1000, LENGTHS = 1025, BINS = 64, HISTOGRAMS_EVERY = 32 };

/* Samples are at least so far apart, as a share of the time since the run began. */
static const double SPREAD = 1e-3;

#define INTEGER(field) #field, offsetof(struct smalti_run_sample, field), false
#define REAL(field)    #field, offsetof(struct smalti_run_sample, field), true
const struct smalti_run_field smalti_run_fields[SMALTI_RUN_FIELDS] = {
    {INTEGER(items)},    {INTEGER(captions)},
    {INTEGER(tokens)},   {"pictures", offsetof(struct smalti_run_sample, images), false},
    {INTEGER(pixels)},   {INTEGER(failures)},
    {INTEGER(rows)},     {INTEGER(bytes)},
    {INTEGER(waiting)},  {INTEGER(computing)},
    {INTEGER(finished)}, {REAL(text)},
    {REAL(decode)},      {REAL(vae)},
    {REAL(write)},       {INTEGER(read)},
    {INTEGER(stored)},
};

struct bin {
	int64_t height, width, count;
};

struct smalti_run_log {
	char *path;
	FILE *stream; /* NULL after the first failure */
	struct smalti_error error;
	double began, interval, next; /* of the steady clock; next: when a sample is due */
	int worker_count;
	int64_t samples;
	int64_t lengths[LENGTHS];
	struct bin bins[BINS + 1]; /* the last one: of all others */
	int bin_count;
};

/* Rounds to milliseconds, which are enough, and short. */
static double rounded(double seconds)
{
	return (double)(int64_t)(seconds * 1000 + 0.5) / 1000;
}

/* Reads the host's name as a part of a file's name. */
static void read_host(char host[HOST])
{
	if (gethostname(host, HOST))
		snprintf(host, HOST, "unknown");
	host[HOST - 1] = '\0';
	for (char *at = host; *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-", *at))
			*at = '_';
	if (host[0] == '.')
		host[0] = '_';
}

/* Appends the object as a line and frees it. After a failure nothing more is tried: a line behind a torn one
 * could not be read. */
static void write_line(struct smalti_run_log *log, cJSON *object)
{
	SCOPED(free) char *text = object ? cJSON_PrintUnformatted(object) : NULL;
	cJSON_Delete(object);
	if (!text) {
		smalti_fail(&log->error, SMALTI_ENOMEM, "%s: out of memory", log->path);
		return;
	}
	smalti_utf8_repair(text);
	if (log->stream && (fprintf(log->stream, "%s\n", text) < 0 || fflush(log->stream))) {
		smalti_fail_errno(&log->error, "%s: cannot be written", log->path);
		fclose(log->stream);
		log->stream = NULL;
	}
}

static cJSON *make_line(const struct smalti_run_log *log)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "t", rounded(smalti_now() - log->began));
	return object;
}

static void write_head(struct smalti_run_log *log, const struct smalti_run_head *head, const char *host)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "run", 1);
	cJSON_AddStringToObject(object, "program", PACKAGE_STRING);
	cJSON_AddStringToObject(object, "host", host);
	cJSON_AddNumberToObject(object, "pid", (double)getpid());
	cJSON_AddNumberToObject(object, "began", rounded(smalti_wall_clock()));
	if (head->policy)
		cJSON_AddStringToObject(object, "policy", head->policy);
	cJSON *workers = cJSON_AddArrayToObject(object, "workers");
	for (int i = 0; i < head->worker_count; i++)
		cJSON_AddItemToArray(workers, cJSON_CreateString(head->workers[i]));
	if (head->options)
		cJSON_AddItemToObject(object, "options", cJSON_Duplicate(head->options, true));
	if (head->sizes)
		cJSON_AddItemToObject(object, "sizes", cJSON_Duplicate(head->sizes, true));
	write_line(log, object);
}

/* Creates a file by a new name: machines may share both their name and the numbers of their processes. */
static int create(struct smalti_run_log *log, const char *directory, const char *host,
		  struct smalti_error *error)
{
	SCOPED(free) char *runs = smalti_format(error, "%s/runs", directory);
	int status = runs ? smalti_make_directory(runs, error) : -1;
	const int64_t stamp = (int64_t)(smalti_wall_clock() * 1000);
	for (int i = 0; i < ATTEMPTS && !status && !log->stream; i++) {
		free(log->path);
		log->path = smalti_format(error, "%s/%s-%ld-%" PRId64 ".jsonl", runs, host, (long)getpid(),
					  stamp + i);
		if (!log->path)
			status = -1;
		else
			log->stream = fopen(log->path, "wxe");
		if (!status && !log->stream && errno != EEXIST)
			status = smalti_fail_errno(error, "%s: cannot be created", log->path);
	}
	return log->stream ? 0 : smalti_fail(error, SMALTI_EIO, "%s: no name is free", log->path);
}

struct smalti_run_log *smalti_run_log_open(const char *directory, const struct smalti_run_head *head,
					   struct smalti_error *error)
{
	char host[HOST];
	struct smalti_run_log *log = smalti_calloc(1, sizeof(*log), error);
	if (!log)
		return NULL;
	log->began = log->next = smalti_now();
	log->interval = head->interval > 0 ? head->interval : 1;
	log->worker_count = head->worker_count;
	read_host(host);
	if (create(log, directory, host, error) == 0) {
		write_head(log, head, host);
		return log;
	}
	free(log->path);
	free(log);
	return NULL;
}

void smalti_run_log_caption(struct smalti_run_log *log, int64_t tokens)
{
	if (log && tokens >= 0)
		log->lengths[tokens < LENGTHS ? tokens : LENGTHS - 1]++;
}

void smalti_run_log_image(struct smalti_run_log *log, int64_t height, int64_t width)
{
	if (!log)
		return;
	int i = 0;
	while (i < log->bin_count && (log->bins[i].height != height || log->bins[i].width != width))
		i++;
	if (i == log->bin_count && i < BINS) {
		log->bins[i] = (struct bin){.height = height, .width = width};
		log->bin_count++;
	}
	log->bins[i].count++;
}

static void add_row(cJSON *rows, const int64_t *values, int count)
{
	cJSON *row = cJSON_CreateArray();
	for (int i = 0; i < count; i++)
		cJSON_AddItemToArray(row, cJSON_CreateNumber((double)values[i]));
	cJSON_AddItemToArray(rows, row);
}

static void write_histograms(struct smalti_run_log *log)
{
	cJSON *object = make_line(log);
	cJSON *lengths = cJSON_AddArrayToObject(object, "lengths");
	cJSON *bins = cJSON_AddArrayToObject(object, "bins");
	for (int64_t i = 0; i < LENGTHS; i++)
		if (log->lengths[i])
			add_row(lengths, (const int64_t[]){i, log->lengths[i]}, 2);
	for (int i = 0; i <= BINS; i++)
		if (log->bins[i].count)
			add_row(
			    bins,
			    (const int64_t[]){log->bins[i].height, log->bins[i].width, log->bins[i].count},
			    3);
	write_line(log, object);
}

static void add_field(cJSON *object, const struct smalti_run_field *field,
		      const struct smalti_run_sample *sample)
{
	const void *value = (const char *)sample + field->offset;
	cJSON_AddNumberToObject(object, field->key,
				field->real ? rounded(*(const double *)value)
					    : (double)*(const int64_t *)value);
}

static void write_sample(struct smalti_run_log *log, const struct smalti_run_sample *sample)
{
	cJSON *object = make_line(log);
	cJSON_AddNumberToObject(object, "resident", (double)smalti_process_resident());
	for (int i = 0; i < SMALTI_RUN_FIELDS; i++)
		add_field(object, &smalti_run_fields[i], sample);
	cJSON *busy = sample->busy ? cJSON_AddArrayToObject(object, "busy") : NULL;
	for (int i = 0; busy && i < log->worker_count; i++)
		cJSON_AddItemToArray(busy, cJSON_CreateNumber(rounded(sample->busy[i])));
	write_line(log, object);
}

bool smalti_run_log_due(const struct smalti_run_log *log)
{
	return log && log->stream && smalti_now() >= log->next;
}

void smalti_run_log_add(struct smalti_run_log *log, const struct smalti_run_sample *sample)
{
	if (!smalti_run_log_due(log))
		return;
	const double now = smalti_now(), spread = (now - log->began) * SPREAD;
	log->next = now + (spread > log->interval ? spread : log->interval);
	write_sample(log, sample);
	if (++log->samples % HISTOGRAMS_EVERY == 0)
		write_histograms(log);
}

void smalti_run_log_devices(struct smalti_run_log *log, cJSON *devices)
{
	cJSON *object = make_line(log);
	cJSON_AddItemToObject(object, "devices", devices);
	write_line(log, object);
}

static int finish(struct smalti_run_log *log, struct smalti_error *error)
{
	if (log->stream && fclose(log->stream))
		smalti_fail_errno(&log->error, "%s: cannot be written", log->path);
	return smalti_pass(error, &log->error);
}

int smalti_run_log_close(struct smalti_run_log *log, const struct smalti_run_sample *last, const char *end,
			 struct smalti_error *error)
{
	if (!log)
		return 0;
	if (last)
		write_sample(log, last);
	write_histograms(log);
	cJSON *object = make_line(log);
	cJSON_AddStringToObject(object, "end", end);
	write_line(log, object);
	const int status = finish(log, error);
	free(log->path);
	free(log);
	return status;
}
