/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/measured.h"
#include "base/file.h"

#include <math.h>

#include <cjson/cJSON.h>
#include <xxhash.h>

enum { LARGEST_TRACE = 1 << 30, CPU = 0, DEVICE = 1, KINDS = 2, MOST_WORKERS = 256 };

struct entry {
	uint64_t hash; /* of name and key */
	double seconds[KINDS];
	int64_t count[KINDS];
};

struct smalti_measured {
	struct entry *entries; /* by hash, each once */
	int64_t count;
};

static uint64_t hash_of(const char *name, uint32_t key)
{
	return XXH64(name, strlen(name), key);
}

static double number(const cJSON *object, const char *key)
{
	return cJSON_GetNumberValue(cJSON_GetObjectItemCaseSensitive(object, key));
}

static bool is(const cJSON *event, const char *key, const char *value)
{
	const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, key));
	return text && strcmp(text, value) == 0;
}

/* Workers' names are in front of their tasks. */
static void read_worker(const cJSON *event, bool devices[MOST_WORKERS])
{
	const cJSON *arguments = cJSON_GetObjectItemCaseSensitive(event, "args");
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(arguments, "name"));
	const double worker = number(event, "tid");
	if (is(event, "name", "thread_name") && name && worker >= 0 && worker < MOST_WORKERS)
		devices[(int)worker] = strncmp(name, "CPU", 3) != 0;
}

static int read_task(struct smalti_measured *measured, const cJSON *event, const bool devices[MOST_WORKERS],
		     struct smalti_error *error)
{
	const char *name = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(event, "name"));
	const double key = number(cJSON_GetObjectItemCaseSensitive(event, "args"), "key"),
		     worker = number(event, "tid"), seconds = 1e-6 * number(event, "dur");
	if (!name || !(key >= 0 && key <= UINT32_MAX && worker >= 0 && worker < MOST_WORKERS && seconds >= 0))
		return smalti_fail(error, SMALTI_EFORMAT,
				   "a task without name, key, worker or time: an older program wrote it");
	if (smalti_grow(&measured->entries, measured->count, sizeof(*measured->entries), error) < 0)
		return -1;
	const int kind = devices[(int)worker] ? DEVICE : CPU;
	struct entry *entry = &measured->entries[measured->count++];
	*entry = (struct entry){.hash = hash_of(name, (uint32_t)key)};
	entry->seconds[kind] = seconds;
	entry->count[kind] = 1;
	return 0;
}

static int read_events(struct smalti_measured *measured, const cJSON *trace, struct smalti_error *error)
{
	bool devices[MOST_WORKERS] = {false};
	const int64_t before = measured->count;
	const cJSON *event;
	cJSON_ArrayForEach (event, cJSON_GetObjectItemCaseSensitive(trace, "traceEvents")) {
		read_worker(event, devices);
		if (is(event, "cat", "task") && read_task(measured, event, devices, error) < 0)
			return -1;
	}
	return measured->count > before ? 0 : smalti_fail(error, SMALTI_EFORMAT, "no tasks");
}

static int read_file(struct smalti_measured *measured, const char *path, struct smalti_error *error)
{
	size_t length;
	SCOPED(free) char *text = smalti_file_read(path, LARGEST_TRACE, &length, error);
	if (!text)
		return -1;
	cJSON *trace = cJSON_ParseWithLength(text, length);
	const int status =
	    trace ? read_events(measured, trace, error) : smalti_fail(error, SMALTI_EFORMAT, "not JSON");
	cJSON_Delete(trace);
	if (status < 0)
		smalti_error_prefix(error, "%s", path);
	return status;
}

static int by_hash(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	return (x->hash > y->hash) - (x->hash < y->hash);
}

static void merge(struct smalti_measured *measured)
{
	int64_t kept = 0;
	qsort(measured->entries, (size_t)measured->count, sizeof(*measured->entries), by_hash);
	for (int64_t i = 0; i < measured->count; i++) {
		const struct entry *next = &measured->entries[i];
		struct entry *last = kept ? &measured->entries[kept - 1] : NULL;
		if (!last || last->hash != next->hash)
			measured->entries[kept++] = *next;
		else
			for (int kind = 0; kind < KINDS; kind++) {
				last->seconds[kind] += next->seconds[kind];
				last->count[kind] += next->count[kind];
			}
	}
	measured->count = kept;
}

struct smalti_measured *smalti_measured_read(const char *files, struct smalti_error *error)
{
	struct smalti_measured *measured = smalti_calloc(1, sizeof(*measured), error);
	int status = measured ? 0 : -1;
	for (size_t length; status == 0 && *files; files += length + (files[length] == ',')) {
		length = strcspn(files, ",");
		SCOPED(free) char *path = smalti_format(error, "%.*s", (int)length, files);
		status = path ? read_file(measured, path, error) : -1;
	}
	if (status == 0) {
		merge(measured);
		return measured;
	}
	smalti_measured_free(measured);
	return NULL;
}

void smalti_measured_free(struct smalti_measured *measured)
{
	if (!measured)
		return;
	free(measured->entries);
	free(measured);
}

double smalti_measured_seconds(const struct smalti_measured *measured, const char *name, uint32_t key,
			       bool device)
{
	const struct entry wanted = {.hash = hash_of(name, key)};
	const struct entry *found =
	    bsearch(&wanted, measured->entries, (size_t)measured->count, sizeof(wanted), by_hash);
	const int kind = device ? DEVICE : CPU;
	return found && found->count[kind] ? found->seconds[kind] / (double)found->count[kind] : (double)NAN;
}
