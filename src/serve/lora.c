/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/adapters.h"
#include "jobs/variants.h"
#include "serve/serve.h"

#include <ctype.h>

/* Returns the path of "NAME=PATH" if it has this name, else NULL. */
static const char *path_of(const char *lora, const char *name, size_t length)
{
	return strncmp(lora, name, length) == 0 && lora[length] == '=' ? lora + length + 1 : NULL;
}

static const char *find(const struct smalti_string_list *loras, const char *name, size_t length)
{
	const char *path = NULL;
	for (int i = 0; i < loras->count && !path; i++)
		path = path_of(loras->items[i], name, length);
	return path;
}

/* Returns the length of a name: letters, digits, '-', '_' and '.'. */
static size_t name_length(const char *text)
{
	size_t length = 0;
	while (isalnum((unsigned char)text[length]) || (text[length] && strchr("-_.", text[length])))
		length++;
	return length;
}

int smalti_serve_loras_check(const struct smalti_string_list *loras, struct smalti_error *error)
{
	for (int i = 0; i < loras->count; i++) {
		const char *lora = loras->items[i];
		const size_t length = name_length(lora);
		if (length == 0 || lora[length] != '=' || !lora[length + 1])
			return smalti_fail(
			    error, SMALTI_EINVAL,
			    "--lora: expected NAME=PATH, the name of letters, digits, '-', '_' "
			    "and '.', found '%.200s'",
			    lora);
		if (strpbrk(lora + length, ",:"))
			return smalti_fail(error, SMALTI_EINVAL,
					   "--lora: the path of %.*s should have no ',' and no ':', found "
					   "'%.200s'; requests give weights",
					   (int)length, lora, lora + length + 1);
		if (find(loras, lora, length) != lora + length + 1)
			return smalti_fail(error, SMALTI_EINVAL, "--lora: %.*s is given twice", (int)length,
					   lora);
	}
	return 0;
}

int smalti_serve_loras_open(const struct smalti_model *model, const struct smalti_string_list *loras,
			    struct smalti_error *error)
{
	int status = 0;
	for (int i = 0; i < loras->count && status == 0; i++) {
		struct smalti_variant *variant =
		    smalti_variant_get(model, strchr(loras->items[i], '=') + 1, error);
		smalti_variant_put(model, variant);
		status = variant ? 0 : -1;
	}
	return status;
}

static int fail_unknown(const struct smalti_string_list *loras, const char *name, size_t length,
			struct smalti_error *error)
{
	char known[400] = "";
	for (int i = 0; i < loras->count; i++)
		smalti_append(known, sizeof(known), ", ", "%.*s", (int)name_length(loras->items[i]),
			      loras->items[i]);
	return smalti_fail(error, SMALTI_EINVAL, "\"lora\": this server has no adapter \"%.*s\"; it has %s",
			   (int)smalti_min((int64_t)length, 99), name, *known ? known : "none");
}

/* Checks that behind the name, in the `whole` bytes of NAME[:WEIGHT], there is nothing but a number: anything
 * else would become part of a path. */
static int check_weight(const char *text, size_t name, size_t whole, struct smalti_error *error)
{
	struct smalti_lora lora;
	SCOPED(free) char *copy = smalti_format(error, "%.*s", (int)whole, text);
	if (!copy)
		return -1;
	if (smalti_lora_read(copy, "lora", &lora, error) == 0 && strlen(lora.path) == name)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "\"lora\": expected NAME or NAME:WEIGHT, a number from -1000 to 1000, found "
			   "\"%.*s\"",
			   (int)smalti_min((int64_t)whole, 99), text);
}

char *smalti_serve_loras_paths(const struct smalti_string_list *loras, const char *text,
			       struct smalti_error *error)
{
	SCOPED(free) char *paths = smalti_format(error, "%s", "");
	for (const char *at = text; paths; at++) {
		const size_t length = strcspn(at, ":,"), whole = strcspn(at, ",");
		const char *path = find(loras, at, length);
		if (!path) {
			fail_unknown(loras, at, length, error);
			return NULL;
		}
		if (check_weight(at, length, whole, error) < 0)
			return NULL;
		char *longer = smalti_format(error, "%s%s%s%.*s", paths, *paths ? "," : "", path,
					     (int)(whole - length), at + length);
		free(paths);
		paths = longer;
		at += whole;
		if (!*at)
			break;
	}
	char *result = paths;
	paths = NULL;
	return result;
}
