/* SPDX-License-Identifier: Apache-2.0 */
#include "rt/op_use.h"
#include "base/dtype.h"

#include <stdatomic.h>

struct smalti_op_counter {
	_Atomic int64_t count, nanoseconds, flops, bytes;
};

static int64_t counters(void)
{
	return (int64_t)smalti_op_count * SMALTI_OP_DTYPES;
}

struct smalti_op_counter *smalti_op_counters_new(int workers, struct smalti_error *error)
{
	const int64_t each = counters() * (int64_t)sizeof(struct smalti_op_counter);
	return smalti_calloc(workers, each, error);
}

struct smalti_op_counter *smalti_op_counters_of(struct smalti_op_counter *all, int worker)
{
	return all + worker * counters();
}

static void add(_Atomic int64_t *sum, double value)
{
	atomic_fetch_add_explicit(sum, (int64_t)value, memory_order_relaxed);
}

void smalti_op_counter_add(struct smalti_op_counter *own, int op, const void *arguments, double seconds)
{
	const struct smalti_op *row = &smalti_ops[op];
	struct smalti_op_counter *counter = &own[op * SMALTI_OP_DTYPES + (int)row->dtype(arguments)];
	add(&counter->count, 1);
	add(&counter->nanoseconds, 1e9 * seconds);
	add(&counter->flops, row->flops(arguments));
	add(&counter->bytes, row->bytes(arguments));
}

static int64_t read_counter(const _Atomic int64_t *sum)
{
	return atomic_load_explicit(sum, memory_order_relaxed);
}

struct smalti_op_use *smalti_op_counters_sum(const struct smalti_op_counter *all, int workers,
					     struct smalti_error *error)
{
	const int64_t each = counters();
	struct smalti_op_use *uses = smalti_calloc(each, sizeof(*uses), error);
	for (int64_t i = 0; uses && i < workers * each; i++) {
		struct smalti_op_use *use = &uses[i % each];
		use->count += read_counter(&all[i].count);
		use->nanoseconds += read_counter(&all[i].nanoseconds);
		use->flops += read_counter(&all[i].flops);
		use->bytes += read_counter(&all[i].bytes);
	}
	return uses;
}

/* A line of the list. */
struct line {
	int64_t place; /* index in the sums */
	struct smalti_op_use use;
};

static int by_time(const void *a, const void *b)
{
	const struct line *x = a, *y = b;
	if (x->use.nanoseconds != y->use.nanoseconds)
		return x->use.nanoseconds < y->use.nanoseconds ? 1 : -1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static cJSON *line_json(const struct line *line)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "name", smalti_ops[line->place / SMALTI_OP_DTYPES].name);
	cJSON_AddStringToObject(object, "dtype",
				smalti_dtype_name((enum smalti_dtype)(line->place % SMALTI_OP_DTYPES)));
	cJSON_AddNumberToObject(object, "count", (double)line->use.count);
	cJSON_AddNumberToObject(object, "seconds", 1e-9 * (double)line->use.nanoseconds);
	cJSON_AddNumberToObject(object, "flops", (double)line->use.flops);
	cJSON_AddNumberToObject(object, "bytes", (double)line->use.bytes);
	return object;
}

cJSON *smalti_op_uses_json(const struct smalti_op_use *before, const struct smalti_op_use *after)
{
	int64_t count = 0;
	SCOPED(free) struct line *lines = smalti_calloc(counters(), sizeof(*lines), NULL);
	if (!lines)
		return NULL;
	for (int64_t i = 0; i < counters(); i++)
		if (after[i].count > before[i].count)
			lines[count++] = (struct line){
			    i,
			    {after[i].count - before[i].count, after[i].nanoseconds - before[i].nanoseconds,
			     after[i].flops - before[i].flops, after[i].bytes - before[i].bytes}};
	qsort(lines, (size_t)count, sizeof(*lines), by_time);
	cJSON *list = cJSON_CreateArray();
	for (int64_t i = 0; i < count; i++)
		cJSON_AddItemToArray(list, line_json(&lines[i]));
	return list;
}
