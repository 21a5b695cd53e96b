/* SPDX-License-Identifier: Apache-2.0 */
#include "simulation/measured.h"
#include "simulation/trace_tasks.h"

#include <math.h>

#include <xxhash.h>

enum { CPU, DEVICE, KINDS };
/* Seconds that StarPU's simulation itself lets pass between two tasks of a worker. */
static const double SIMULATED_GAP = 6e-6;

struct entry {
	uint64_t hash; /* of name and key */
	double seconds[KINDS];
	int64_t count[KINDS];
};

struct smalti_measured {
	struct entry *entries; /* by hash, each once */
	int64_t count;
	double late[KINDS], tasks[KINDS]; /* of all tasks together */
};

static uint64_t hash_of(const char *name, uint32_t key)
{
	return XXH64(name, strlen(name), key);
}

static int add_task(void *user, const struct smalti_traced_machine *machine,
		    const struct smalti_traced_task *task, struct smalti_error *error)
{
	struct smalti_measured *measured = user;
	if (smalti_grow(&measured->entries, measured->count, sizeof(*measured->entries), error) < 0)
		return -1;
	const int kind = smalti_traced_device(machine->worker[task->worker]) ? DEVICE : CPU;
	struct entry *entry = &measured->entries[measured->count++];
	*entry = (struct entry){.hash = hash_of(task->name, task->key)};
	entry->seconds[kind] = task->seconds;
	entry->count[kind] = 1;
	measured->late[kind] += task->late;
	measured->tasks[kind]++;
	return 0;
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
	const struct smalti_trace_reader reader = {.on_task = add_task, .user = measured};
	if (measured && smalti_traces_read(files, &reader, error) == 0) {
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
	if (!found || !found->count[kind])
		return (double)NAN;
	const double late = measured->late[kind] / measured->tasks[kind];
	return found->seconds[kind] / (double)found->count[kind] + fmax(0, late - SIMULATED_GAP);
}
