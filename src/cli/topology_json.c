/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/topology.h"

/* A field of one of the structs of smalti/topology.h under its key. */
enum kind { TEXT, INTEGER, NUMBER, BOOLEAN };

struct field {
	const char *key;
	enum kind kind;
	size_t offset;
};

#define KIND(type, field)                                                                                    \
	_Generic(((type *)0)->field, int64_t : INTEGER, double : NUMBER, bool : BOOLEAN, default : TEXT)
#define FIELD(type, field)                                                                                   \
#field, KIND(struct smalti_topology##type, field), offsetof(struct smalti_topology##type, field)

static const struct field machine[] = {
    {FIELD(, cpu)},    {FIELD(, packages)}, {FIELD(, cores)},    {FIELD(, threads)}, {FIELD(, allowed_cores)},
    {FIELD(, memory)}, {FIELD(, isa)},      {FIELD(, features)}, {FIELD(, max_isa)},
};

/* Arrays of struct smalti_topology. */
static const struct array {
	const char *key;
	size_t items, count, size; /* offsets of the pointer and of the length; size of one */
	struct field fields[6];    /* those behind the last have no key */
} arrays[] = {
#define ARRAY(items, count)                                                                                  \
#items, offsetof(struct smalti_topology, items), offsetof(struct smalti_topology, count),            \
	    sizeof(*((struct smalti_topology *)0)->items)
    {ARRAY(caches, cache_count),
     {{FIELD(_cache, level)}, {FIELD(_cache, kind)}, {FIELD(_cache, bytes)}, {FIELD(_cache, count)}}},
    {ARRAY(numa_nodes, numa_node_count),
     {{FIELD(_numa, node)}, {FIELD(_numa, bytes)}, {FIELD(_numa, cores)}}},
    {ARRAY(gpus, gpu_count), {{FIELD(_gpu, name)}, {FIELD(_gpu, bus)}, {FIELD(_gpu, devices)}}},
    {ARRAY(workers, worker_count),
     {{FIELD(_worker, name)}, {FIELD(_worker, kind)}, {FIELD(_worker, core)}, {FIELD(_worker, memory_node)}}},
    {ARRAY(memory_nodes, memory_node_count), {{FIELD(_memory_node, name)}, {FIELD(_memory_node, bytes)}}},
    {ARRAY(links, link_count),
     {{FIELD(_link, from)}, {FIELD(_link, to)}, {FIELD(_link, bandwidth)}, {FIELD(_link, latency)}}},
    {ARRAY(rates, rate_count),
     {{FIELD(_rate, workers)},
      {FIELD(_rate, bytes)},
      {FIELD(_rate, read)},
      {FIELD(_rate, copy)},
      {FIELD(_rate, triad)},
      {FIELD(_rate, fma)}}},
    {ARRAY(libraries, library_count),
     {{FIELD(_library, name)}, {FIELD(_library, version)}, {FIELD(_library, serves)}}},
    {ARRAY(policies, policy_count),
     {{FIELD(_policy, name)}, {FIELD(_policy, description)}, {FIELD(_policy, active)}}},
};

static cJSON *make_value(enum kind kind, const void *value)
{
	switch (kind) {
	case INTEGER:
		return cJSON_CreateNumber((double)*(const int64_t *)value);
	case NUMBER:
		return cJSON_CreateNumber(*(const double *)value);
	case BOOLEAN:
		return cJSON_CreateBool(*(const bool *)value);
	default:
		return cJSON_CreateString(value);
	}
}

/* Takes `item`, even if it fails for want of memory. */
static bool add(cJSON *object, const char *key, cJSON *item)
{
	if (item && cJSON_AddItemToObject(object, key, item))
		return true;
	cJSON_Delete(item);
	return false;
}

static bool add_fields(cJSON *object, const struct field *fields, size_t count, const void *from)
{
	for (size_t i = 0; i < count && fields[i].key; i++)
		if (!add(object, fields[i].key,
			 make_value(fields[i].kind, (const char *)from + fields[i].offset)))
			return false;
	return true;
}

static bool add_array(cJSON *object, const struct array *array, const void *topology)
{
	const char *items = *(const char *const *)((const char *)topology + array->items);
	int64_t count = *(const int64_t *)((const char *)topology + array->count);
	cJSON *list = cJSON_CreateArray();
	if (!add(object, array->key, list))
		return false;
	for (int64_t i = 0; i < count; i++) {
		cJSON *item = cJSON_CreateObject();
		if (!cJSON_AddItemToArray(list, item))
			return false;
		if (!add_fields(item, array->fields, COUNT_OF(array->fields),
				items + (size_t)i * array->size))
			return false;
	}
	return true;
}

int smalti_topology_print_json(const struct smalti_topology *topology, FILE *to, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = cJSON_CreateObject();
	bool done = object && add_fields(object, machine, COUNT_OF(machine), topology);
	for (size_t i = 0; done && i < COUNT_OF(arrays); i++)
		done = add_array(object, &arrays[i], topology);
	SCOPED(free) char *text = done ? cJSON_Print(object) : NULL;
	if (!text)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for the topology's JSON");
	fputs(text, to);
	fputc('\n', to);
	return 0;
}
