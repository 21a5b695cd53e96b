/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/process.h"
#include "ranks/ranks.h"
#include "rt/device_use.h"
#include "rt/op_use.h"
#include "rt/session.h"
#include "smalti/version.h"
#include "train/run.h"

#include <math.h>

struct smalti_training_log {
	char *path;
	FILE *stream; /* NULL: the log is lost */
	smalti_training_log_lost *lost;
	void *user;
	struct smalti_session *session;
	double *busy;               /* seconds of each worker, up to the last line */
	int64_t moved;              /* bytes to and from devices, up to the last line */
	double looked;              /* when devices were read last, in seconds since 1970 */
	struct smalti_op_use *done; /* by CPUs, before the log began */
};

/* Writes nothing more, as a line behind a cut one would be no line. */
static void lose(struct smalti_training_log *log)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_fail_errno(&error, "%s: cannot be written", log->path);
	if (log->stream)
		fclose(log->stream);
	log->stream = NULL;
	log->lost(log->user, &error);
}

/* Writes an object whole, or after a crash cut, and frees it; NULL is none. */
static void write_line(struct smalti_training_log *log, cJSON *object)
{
	SCOPED(free) char *text = object ? cJSON_PrintUnformatted(object) : NULL;
	const bool wanted = object && log && log->stream;
	cJSON_Delete(object);
	if (!wanted)
		return;
	if (!text)
		errno = ENOMEM;
	if (!text || fprintf(log->stream, "%s\n", text) < 0 || fflush(log->stream) != 0)
		lose(log);
}

/* Opens the log to add lines. If the last one was cut, it gets an end, and only it is lost. */
static FILE *open_stream(const char *path)
{
	FILE *stream = fopen(path, "a+e");
	if (stream && fseeko(stream, -1, SEEK_END) == 0 && fgetc(stream) != '\n' &&
	    fseeko(stream, 0, SEEK_END) == 0)
		fputc('\n', stream);
	return stream;
}

static void add_workers(cJSON *object, const struct smalti_session *session)
{
	cJSON *names = cJSON_AddArrayToObject(object, "workers");
	for (int i = 0; i < session->workers; i++) {
		char name[SMALTI_WORKER_NAME];
		smalti_session_worker_name(i, name);
		cJSON_AddItemToArray(names, cJSON_CreateString(name));
	}
}

/* Adds the seconds that each worker spent in tasks since the last line. */
static void add_busy(cJSON *object, struct smalti_training_log *log)
{
	cJSON *shares = cJSON_AddArrayToObject(object, "busy");
	for (int i = 0; i < log->session->workers; i++) {
		const double busy = smalti_session_busy(log->session, i);
		cJSON_AddItemToArray(shares, cJSON_CreateNumber(busy - log->busy[i]));
		log->busy[i] = busy;
	}
}

/* Returns the number of devices, and what each has done up to now, with its utilisation since the last
 * line. */
static int look_at_devices(struct smalti_training_log *log, struct smalti_device_use uses[SMALTI_MAX_NODES])
{
	const double since = log->looked;
	log->looked = smalti_wall_clock();
	return smalti_devices_use_lately(log->session, since, uses);
}

static int64_t moved_by(const struct smalti_device_use *uses, int count)
{
	int64_t moved = 0;
	for (int i = 0; i < count; i++)
		moved += uses[i].bytes_to + uses[i].bytes_from;
	return moved;
}

/* Adds the bytes that moved since the last line, and the memory of each device: that in use, and what tiles
 * were planned to take. */
static void add_devices(cJSON *object, struct smalti_training_log *log, const int64_t *planned)
{
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	const int count = look_at_devices(log, uses);
	const int64_t moved = moved_by(uses, count);
	cJSON_AddNumberToObject(object, "moved", (double)(moved - log->moved));
	log->moved = moved;
	cJSON *devices = count ? cJSON_AddArrayToObject(object, "devices") : NULL;
	for (int i = 0; i < count; i++) {
		cJSON *device = cJSON_CreateObject();
		smalti_json_add_text(device, "name", uses[i].name);
		cJSON_AddNumberToObject(device, "used_memory", (double)uses[i].used_memory);
		cJSON_AddNumberToObject(device, "planned", (double)planned[uses[i].node]);
		if (!isnan(uses[i].utilisation))
			cJSON_AddNumberToObject(device, "utilisation", uses[i].utilisation);
		cJSON_AddItemToArray(devices, device);
	}
}

static void free_log(struct smalti_training_log *log)
{
	free(log->busy);
	free(log->done);
	free(log->path);
	free(log);
}

static struct smalti_training_log *new_log(const char *run, struct smalti_session *session)
{
	struct smalti_training_log *log = smalti_calloc(1, sizeof(*log), NULL);
	if (!log)
		return NULL;
	log->session = session;
	log->path = smalti_format(NULL, "%s/log.jsonl", run);
	log->busy = smalti_calloc(session->workers, sizeof(*log->busy), NULL);
	log->done = smalti_op_counters_sum(session->op_counters, session->workers, NULL);
	for (int i = 0; log->busy && i < session->workers; i++)
		log->busy[i] = smalti_session_busy(session, i);
	if (log->path && log->busy && log->done)
		return log;
	free_log(log);
	return NULL;
}

struct smalti_training_log *smalti_training_log_open(const struct smalti_training_log_head *head,
						     smalti_training_log_lost *lost, void *user)
{
	struct smalti_training_log *log = new_log(head->run, head->session);
	if (!log) {
		lost(user, &(struct smalti_error){SMALTI_ENOMEM, "no memory for the log"});
		return NULL;
	}
	log->lost = lost;
	log->user = user;
	log->stream = open_stream(log->path);
	if (!log->stream)
		lose(log);
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	log->moved = moved_by(uses, look_at_devices(log, uses));
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "training", 1);
	cJSON_AddStringToObject(object, "program", "smalti " SMALTI_VERSION);
	cJSON_AddNumberToObject(object, "began", smalti_wall_clock());
	cJSON_AddNumberToObject(object, "from", (double)head->step);
	cJSON_AddNumberToObject(object, "steps", (double)head->steps);
	add_workers(object, head->session);
	cJSON_AddItemToObject(object, "identity", cJSON_Duplicate(head->identity, true));
	write_line(log, object);
	return log;
}

/* Adds what each rank's tiles took, and what was planned. */
static void add_memory(cJSON *object, const struct smalti_step_memory *memory)
{
	cJSON *ranks = cJSON_AddArrayToObject(object, "tiles");
	for (int i = 0; i < smalti_ranks_count(); i++) {
		cJSON *rank = cJSON_CreateObject();
		cJSON_AddNumberToObject(rank, "planned", (double)memory[i].planned);
		cJSON_AddNumberToObject(rank, "used", (double)memory[i].used);
		cJSON_AddItemToArray(ranks, rank);
	}
}

void smalti_training_log_step(struct smalti_training_log *log, const struct smalti_training_state *state,
			      int64_t epoch, const struct smalti_step_result *result,
			      const struct smalti_step_memory *memory, double data_seconds)
{
	const double seconds = data_seconds + result->seconds;
	if (!log)
		return;
	const struct {
		const char *key;
		double value;
	} numbers[] = {
	    {"step", (double)state->steps},
	    {"epoch", (double)epoch},
	    {"samples", (double)state->samples},
	    {"latent_pixels", (double)result->pixels / (double)result->samples},
	    {"caption_tokens", (double)result->caption_tokens / (double)result->samples},
	    {"loss", result->loss},
	    {"mse", result->mse},
	    {"vb", result->vb},
	    {"norm", result->norm},
	    {"lr", result->rate},
	    {"scale", result->scale},
	    {"skipped", result->skipped},
	    {"tflops", seconds > 0 ? result->flops / seconds * 1e-12 : 0},
	    {"seconds", seconds},
	    {"samples_per_second", seconds > 0 ? (double)result->samples / seconds : 0},
	    {"data_seconds", data_seconds},
	    {"update_seconds", result->update_seconds},
	    {"resident", (double)smalti_process_resident()},
	};
	cJSON *object = cJSON_CreateObject();
	for (size_t i = 0; i < COUNT_OF(numbers); i++)
		cJSON_AddNumberToObject(object, numbers[i].key, numbers[i].value);
	add_memory(object, memory);
	add_devices(object, log, result->on_device);
	add_busy(object, log);
	write_line(log, object);
}

void smalti_training_log_evaluation(struct smalti_training_log *log, int64_t step, const char *of,
				    const struct smalti_evaluation *evaluation)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddNumberToObject(object, "step", (double)step);
	cJSON_AddStringToObject(object, "evaluation", of);
	cJSON_AddNumberToObject(object, "items", (double)evaluation->items);
	cJSON_AddItemToObject(object, "mse",
			      cJSON_CreateDoubleArray(evaluation->mse, SMALTI_EVALUATED_TIMESTEPS));
	cJSON_AddItemToObject(object, "vb",
			      cJSON_CreateDoubleArray(evaluation->vb, SMALTI_EVALUATED_TIMESTEPS));
	cJSON_AddNumberToObject(object, "mean_mse", evaluation->mean_mse);
	cJSON_AddNumberToObject(object, "mean_vb", evaluation->mean_vb);
	write_line(log, object);
}

void smalti_training_log_checkpoint(struct smalti_training_log *log, int64_t step, int64_t bytes,
				    double seconds)
{
	char name[32];
	cJSON *object = cJSON_CreateObject();
	snprintf(name, sizeof(name), "step-%" PRId64, step);
	cJSON_AddStringToObject(object, "checkpoint", name);
	cJSON_AddNumberToObject(object, "bytes", (double)bytes);
	cJSON_AddNumberToObject(object, "seconds", seconds);
	write_line(log, object);
}

void smalti_training_log_note(struct smalti_training_log *log, const char *key, const char *text)
{
	cJSON *object = cJSON_CreateObject();
	smalti_json_add_text(object, key, text);
	write_line(log, object);
}

static void log_operations(struct smalti_training_log *log)
{
	SCOPED(free)
	struct smalti_op_use *after =
	    smalti_op_counters_sum(log->session->op_counters, log->session->workers, NULL);
	cJSON *object = after ? cJSON_CreateObject() : NULL;
	if (object)
		cJSON_AddItemToObject(object, "operations", smalti_op_uses_json(log->done, after));
	write_line(log, object);
}

static void log_devices(struct smalti_training_log *log)
{
	struct smalti_device_use uses[SMALTI_MAX_NODES];
	const int count = smalti_devices_use(log->session, uses);
	cJSON *object = count ? cJSON_CreateObject() : NULL;
	if (object)
		cJSON_AddItemToObject(object, "devices", smalti_devices_use_json(uses, count));
	write_line(log, object);
}

void smalti_training_log_close(struct smalti_training_log *log)
{
	if (!log)
		return;
	log_operations(log);
	log_devices(log);
	if (log->stream)
		fclose(log->stream);
	free_log(log);
}
