/* SPDX-License-Identifier: Apache-2.0 */
#include "text/prompt_json.h"

#include "base/alloc.h"
#include "base/json.h"
#include "base/parse.h"

#include <stdio.h>
#include <string.h>

enum kind { STRING, INTEGER, GUIDANCE, SEED, BINNING };

#define AT(field) offsetof(struct smalti_prompt_line, field)

static const struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	enum smalti_json_need need;
	int64_t minimum, maximum;
} keys[] = {
    {"prompt", STRING, AT(prompt), SMALTI_JSON_REQUIRED, 0, 0},
    {"negative_prompt", STRING, AT(negative), SMALTI_JSON_NULLABLE, 0, 0},
    {"seed", SEED, AT(seed), SMALTI_JSON_OPTIONAL, 0, 0},
    {"width", INTEGER, AT(width), SMALTI_JSON_OPTIONAL, 16, 1000000000},
    {"height", INTEGER, AT(height), SMALTI_JSON_OPTIONAL, 16, 1000000000},
    {"num_inference_steps", INTEGER, AT(steps), SMALTI_JSON_OPTIONAL, 1, 1000},
    {"guidance_scale", GUIDANCE, AT(guidance), SMALTI_JSON_OPTIONAL, 0, 1000},
    {"id", STRING, AT(id), SMALTI_JSON_NULLABLE, 0, 0},
    {"num_images_per_prompt", INTEGER, AT(images), SMALTI_JSON_OPTIONAL, 1, 1000000},
    {"scheduler", STRING, AT(scheduler), SMALTI_JSON_NULLABLE, 0, 0},
    {"use_resolution_binning", BINNING, AT(binning), SMALTI_JSON_OPTIONAL, 0, 0},
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

static int check_keys(const cJSON *object, struct smalti_error *error)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, object) {
		int i = 0;
		while (i < KEYS && strcmp(keys[i].name, item->string) != 0)
			i++;
		if (i == KEYS)
			return smalti_fail(
			    error, SMALTI_EFORMAT,
			    "unknown key \"%.99s\"; expected prompt, negative_prompt, seed, width, "
			    "height, num_inference_steps, guidance_scale, id, "
			    "num_images_per_prompt, scheduler or use_resolution_binning",
			    item->string);
	}
	return 0;
}

static int read_string(const cJSON *object, const struct key *key, struct smalti_prompt_line *line,
		       struct smalti_error *error)
{
	const char *text = NULL;
	if (smalti_json_string(object, key->name, key->need, &text, error))
		return -1;
	if (!text)
		return 0;
	char *copy = smalti_format(error, "%s", text);
	*(char **)((char *)line + key->offset) = copy;
	return copy ? 0 : -1;
}

/* The text behind the colon of the index-th member of an object that is valid JSON. */
static const char *member_text(const char *text, int index)
{
	int depth = 0;
	bool quoted = false;
	for (;; text++) {
		if (quoted && *text == '\\')
			text++;
		else if (*text == '"')
			quoted = !quoted;
		else if (quoted)
			continue;
		else if (*text == ':' && depth == 1 && index-- == 0)
			return text + 1;
		else
			depth += (*text == '{' || *text == '[') - (*text == '}' || *text == ']');
	}
}

/* cJSON keeps numbers as doubles, which hold no seed past 2^53: the digits are read from the line. */
static int read_seed(const cJSON *object, const char *text, struct smalti_prompt_line *line,
		     struct smalti_error *error)
{
	int index = 0;
	const cJSON *item;
	cJSON_ArrayForEach (item, object) {
		if (strcmp(item->string, "seed") == 0)
			break;
		index++;
	}
	if (!item)
		return 0;
	char found[64];
	const char *words = smalti_json_describe(item, found);
	if (cJSON_IsNumber(item)) {
		words = found;
		const char *number = member_text(text, index);
		number += strspn(number, " \t\r");
		size_t length = strspn(number, "0123456789+-.eE");
		snprintf(found, sizeof(found), "%.*s%s", (int)(length < 40 ? length : 40), number,
			 length < 40 ? "" : "...");
		line->has_seed = smalti_parse_seed(found, &line->seed, NULL) == 0;
	}
	if (!line->has_seed)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"seed\" should be an integer from -2^63 to 2^64-1, found %s", words);
	return 0;
}

static int read_key(const cJSON *object, const struct key *key, const char *text,
		    struct smalti_prompt_line *line, struct smalti_error *error)
{
	void *to = (char *)line + key->offset;
	switch (key->kind) {
	case STRING:
		return read_string(object, key, line, error);
	case INTEGER:
		return smalti_json_int(object, key->name, key->need, key->minimum, key->maximum, to, error);
	case GUIDANCE:
		line->has_guidance = cJSON_GetObjectItemCaseSensitive(object, key->name);
		return smalti_json_double(object, key->name, key->need, (double)key->minimum,
					  (double)key->maximum, to, error);
	case BINNING:
		line->has_binning = cJSON_GetObjectItemCaseSensitive(object, key->name);
		return smalti_json_bool(object, key->name, key->need, to, error);
	case SEED:
		return read_seed(object, text, line, error);
	}
	return 0;
}

static int read_object(const cJSON *object, const char *text, struct smalti_prompt_line *line,
		       struct smalti_error *error)
{
	char found[64];
	if (!cJSON_IsObject(object))
		return smalti_fail(error, SMALTI_EFORMAT, "expected an object, found %s",
				   smalti_json_describe(object, found));
	if (check_keys(object, error))
		return -1;
	for (int i = 0; i < KEYS; i++)
		if (read_key(object, &keys[i], text, line, error))
			return -1;
	return line->id ? smalti_check_id(line->id, error) : 0;
}

int smalti_prompt_parse_json(const char *text, size_t length, struct smalti_prompt_line *line,
			     struct smalti_error *error)
{
	cJSON *object = smalti_json_parse(text, length, error);
	if (!object)
		return -1;
	int status = read_object(object, text, line, error);
	cJSON_Delete(object);
	return status;
}
