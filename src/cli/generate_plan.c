/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "cli/generate.h"

/* The columns that are shown of each place. */
static const struct {
	const char *key, *title;
	size_t offset;
	double unit;
} columns[] = {
#define COLUMN(member, key, title, unit)                                                                     \
	{                                                                                                    \
		key, title, offsetof(struct smalti_place_load, member), unit                                 \
	}
    COLUMN(flops, "flops", "GFLOP", 1e9),
    COLUMN(keys, "bytes_keys", "keys", 1 << 20),
    COLUMN(heads, "bytes_heads", "heads", 1 << 20),
    COLUMN(sums, "bytes_sums", "sums", 1 << 20),
    COLUMN(stream, "bytes_stream", "stream", 1 << 20),
    COLUMN(modulation, "bytes_modulation", "modulation", 1 << 20),
    COLUMN(weights, "weights", "weights", 1 << 20),
    COLUMN(activations, "activations", "activations", 1 << 20),
    COLUMN(buffers, "buffers", "buffers", 1 << 20),
#undef COLUMN
};

static double value(const struct smalti_place_load *load, size_t column)
{
	double value;
	memcpy(&value, (const char *)load + columns[column].offset, sizeof(value));
	return value;
}

static int print_places(const struct smalti_plan *plan, struct smalti_error *error)
{
	enum { NAME = 32, NUMBER = 11 };
	struct smalti_place_load load;
	printf("%-*s", NAME, "place");
	for (size_t i = 0; i < COUNT_OF(columns); i++)
		printf(" %*s", NUMBER, columns[i].title);
	puts("");
	for (int place = 0; place < smalti_plan_place_count(plan); place++) {
		if (smalti_plan_load(plan, place, &load, error) < 0)
			return -1;
		printf("%-*.*s", NAME, NAME, load.name);
		for (size_t i = 0; i < COUNT_OF(columns); i++)
			printf(" %*.3f", NUMBER, value(&load, i) / columns[i].unit);
		puts("");
	}
	return 0;
}

static int print(const struct smalti_item *item, const struct smalti_plan *plan, struct smalti_error *error)
{
	const struct smalti_request *r = &item->request;
	const char *strategy = smalti_plan_strategy(plan), *shares = smalti_plan_shares(plan);
	printf("%s: %lldx%lld pixels, %lld steps; ", item->id, (long long)r->width, (long long)r->height,
	       (long long)r->steps);
	if (strategy || shares)
		printf("%s%s%s\n", strategy ? strategy : "patch", shares ? ", shares " : "",
		       shares ? shares : "");
	else
		puts("the scheduling policy places each task");
	puts("of the last pass: operations, MiB that are received; MiB that are held");
	return print_places(plan, error);
}

static cJSON *to_json(const struct smalti_item *item, const struct smalti_plan *plan,
		      struct smalti_error *error)
{
	const struct smalti_request *r = &item->request;
	struct smalti_place_load load;
	cJSON *object = cJSON_CreateObject();
	smalti_json_add_text(object, "id", item->id);
	cJSON_AddNumberToObject(object, "width", (double)r->width);
	cJSON_AddNumberToObject(object, "height", (double)r->height);
	cJSON_AddNumberToObject(object, "num_inference_steps", (double)r->steps);
	if (smalti_plan_strategy(plan))
		cJSON_AddStringToObject(object, "strategy", smalti_plan_strategy(plan));
	if (smalti_plan_shares(plan))
		cJSON_AddStringToObject(object, "shares", smalti_plan_shares(plan));
	cJSON *places = cJSON_AddArrayToObject(object, "places");
	for (int place = 0; place < smalti_plan_place_count(plan); place++) {
		if (smalti_plan_load(plan, place, &load, error) < 0) {
			cJSON_Delete(object);
			return NULL;
		}
		cJSON *row = cJSON_CreateObject();
		smalti_json_add_text(row, "name", load.name);
		for (size_t i = 0; i < COUNT_OF(columns); i++)
			cJSON_AddNumberToObject(row, columns[i].key, value(&load, i));
		cJSON_AddItemToArray(places, row);
	}
	return object;
}

static int show(struct smalti_generation *g, struct smalti_item *item, struct smalti_error *error)
{
	struct smalti_plan *plan = smalti_generation_resolve(g, item, error);
	int status = plan ? 0 : -1;
	if (plan && g->options->json) {
		cJSON *object = to_json(item, plan, error);
		status = object ? 0 : -1;
		if (object)
			smalti_json_line(object, &g->report.broken);
	} else if (plan) {
		status = print(item, plan, error);
	}
	smalti_plan_free(plan);
	if (status < 0)
		smalti_source_add_context(&g->source, item, error);
	return status;
}

int smalti_generation_plan(struct smalti_generation *g, struct smalti_error *error)
{
	int status = 0;
	while (status == 0) {
		struct smalti_item item;
		const enum smalti_prompts_status found = smalti_source_next(&g->source, &item, error);
		if (found == SMALTI_PROMPTS_END)
			return 0;
		status = found == SMALTI_PROMPTS_LINE ? show(g, &item, error) : -1;
		smalti_prompt_line_free(&item.line);
	}
	return -1;
}
