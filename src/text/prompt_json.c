/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_fields.h"
#include "base/parse.h"
#include "text/prompts.h"

#include <math.h>

#define CONFIG struct smalti_prompt_line

/* All keys but "seed". */
static const struct smalti_field fields[] = {
    {FIELD_TEXT("prompt", REQUIRED, prompt)},
    {FIELD_TEXT("negative_prompt", OPTIONAL, negative)},
    {FIELD_INT("width", OPTIONAL, width, 16, 1000000000)},
    {FIELD_INT("height", OPTIONAL, height, 16, 1000000000)},
    {FIELD_INT("num_inference_steps", OPTIONAL, steps, 1, 1000)},
    {FIELD_DOUBLE("guidance_scale", OPTIONAL, guidance, 0, 1000)},
    {FIELD_DOUBLE("eta", OPTIONAL, eta, 0, 1)},
    {FIELD_TEXT("id", OPTIONAL, id)},
    {FIELD_INT("num_images_per_prompt", OPTIONAL, images, 1, 1000000)},
    {FIELD_TEXT("scheduler", OPTIONAL, scheduler)},
    {FIELD_TEXT("lora", OPTIONAL, lora)},
    {FIELD_TEXT("step_cache", OPTIONAL, step_cache)},
    {FIELD_DOUBLE("strength", OPTIONAL, strength, 0, 1)},
    {FIELD_BOOL("keep_original", OPTIONAL, keep)},
    {FIELD_BOOL("use_resolution_binning", OPTIONAL, binning)},
};
enum { FIELDS = COUNT_OF(fields) };

static bool has_key(const struct smalti_field *rows, size_t count, const char *key)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(rows[i].key, key) == 0)
			return true;
	return false;
}

static int check_keys(const cJSON *object, const struct smalti_prompt_fields *more,
		      struct smalti_error *error)
{
	char known[512] = "seed";
	const cJSON *item;
	for (size_t i = 0; i < FIELDS; i++)
		smalti_append(known, sizeof(known), ", ", "%s", fields[i].key);
	for (size_t i = 0; more && i < more->count; i++)
		smalti_append(known, sizeof(known), ", ", "%s", more->fields[i].key);
	cJSON_ArrayForEach (item, object)
		if (strcmp(item->string, "seed") != 0 && !has_key(fields, FIELDS, item->string) &&
		    !(more && has_key(more->fields, more->count, item->string)))
			return smalti_fail(error, SMALTI_EFORMAT, "unknown key \"%.99s\"; known are %s",
					   item->string, known);
	return 0;
}

/* Tells whether it is an integer that a double holds exactly, as 3 or 3.0. */
static bool is_whole(const cJSON *item)
{
	const double value = item->valuedouble;
	return cJSON_IsNumber(item) && fabs(value) <= 0x1p53 && trunc(value) == value;
}

/* Reads the digits: cJSON keeps numbers as doubles, which hold no seed past 2^53. */
static int read_seed(const cJSON *object, struct smalti_prompt_line *line, struct smalti_error *error)
{
	const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, "seed");
	const char *digits = smalti_json_long_number(item);
	char found[64];
	if (!item)
		return 0;
	if (digits)
		line->has_seed = smalti_parse_seed(digits, &line->seed, NULL) == 0;
	else if (is_whole(item)) {
		line->seed = (uint64_t)(int64_t)item->valuedouble;
		line->has_seed = true;
	}
	if (!line->has_seed)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"seed\" should be an integer from -2^63 to 2^64-1, found %s",
				   smalti_json_describe(item, found));
	return 0;
}

/* Drops nulls: tables from programs have null where no value was given. */
static void drop_nulls(cJSON *object)
{
	for (cJSON *item = object->child, *next; item; item = next) {
		next = item->next;
		if (cJSON_IsNull(item) && !smalti_json_is_nan(item))
			cJSON_Delete(cJSON_DetachItemViaPointer(object, item));
	}
}

static int read_object(cJSON *object, struct smalti_prompt_line *line,
		       const struct smalti_prompt_fields *more, struct smalti_error *error)
{
	char found[64];
	if (!cJSON_IsObject(object))
		return smalti_fail(error, SMALTI_EFORMAT, "expected an object, found %s",
				   smalti_json_describe(object, found));
	if (check_keys(object, more, error))
		return -1;
	drop_nulls(object);
	if (smalti_fields_read(object, fields, FIELDS, line, error) || read_seed(object, line, error) ||
	    (more && smalti_fields_read(object, more->fields, more->count, more->values, error)))
		return -1;
	line->has_guidance = cJSON_GetObjectItemCaseSensitive(object, "guidance_scale");
	line->has_eta = cJSON_GetObjectItemCaseSensitive(object, "eta");
	line->has_keep = cJSON_GetObjectItemCaseSensitive(object, "keep_original");
	line->has_binning = cJSON_GetObjectItemCaseSensitive(object, "use_resolution_binning");
	return line->id ? smalti_check_id(line->id, error) : 0;
}

int smalti_prompt_parse_json(const char *text, size_t length, struct smalti_prompt_line *line,
			     const struct smalti_prompt_fields *more, struct smalti_error *error)
{
	SCOPED(cJSON_Delete) cJSON *object = smalti_json_parse(text, length, error);
	if (!object)
		return -1;
	return read_object(object, line, more, error);
}
