/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json_kept.h"

#include <math.h>

enum { HOLDS_NUL = 1 }; /* valueint of a string, else 0 */

static const double EXACT = 0x1p53; /* doubles represent integers below it exactly */

const char *smalti_json_long_number(const cJSON *item)
{
	return cJSON_IsNumber(item) ? item->valuestring : NULL;
}

bool smalti_json_is_nan(const cJSON *item)
{
	return cJSON_IsNull(item) && item->valuestring;
}

bool smalti_json_holds_nul(const cJSON *item)
{
	return cJSON_IsString(item) && item->valueint == HOLDS_NUL;
}

/* Walks through the values of a valid JSON text. */
struct cursor {
	const char *text;
	size_t length, at;
};

static bool ends_token(char byte)
{
	return byte && strchr(" \t\r\n,:{}[]", byte);
}

/* Moves past the string that begins here; returns whether it holds a NUL. */
static bool skip_string(struct cursor *c)
{
	static const char nul[] = "\\u0000";
	const size_t length = sizeof(nul) - 1;
	bool found = false;
	for (c->at++; c->at < c->length && c->text[c->at] != '"'; c->at++) {
		if (c->text[c->at] != '\\')
			continue;
		found = found || (c->length - c->at >= length && memcmp(c->text + c->at, nul, length) == 0);
		c->at++;
	}
	c->at++;
	return found;
}

/* Finds the next string, number or word, and its length; returns whether it is a string with a NUL. */
static bool next_token(struct cursor *c, const char **token, size_t *length)
{
	while (c->at < c->length && ends_token(c->text[c->at]))
		c->at++;
	const size_t start = c->at;
	const bool string = c->at < c->length && c->text[c->at] == '"', nul = string && skip_string(c);
	while (!string && c->at < c->length && !ends_token(c->text[c->at]))
		c->at++;
	*token = c->text + start;
	*length = c->at - start;
	return nul;
}

static int keep_text(cJSON *item, const char *token, size_t length, struct smalti_error *error)
{
	item->valuestring = cJSON_malloc(length + 1); /* cJSON_Delete() frees it so */
	if (!item->valuestring)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for a number of %zu digits", length);
	memcpy(item->valuestring, token, length);
	item->valuestring[length] = '\0';
	return 0;
}

static int keep(struct cursor *c, cJSON *item, struct smalti_error *error)
{
	const char *token;
	size_t length;
	if (!cJSON_IsObject(item) && !cJSON_IsArray(item)) {
		const bool nul = next_token(c, &token, &length);
		if (cJSON_IsString(item))
			item->valueint = nul ? HOLDS_NUL : 0;
		const bool kept = cJSON_IsNumber(item) ? fabs(item->valuedouble) >= EXACT
						       : cJSON_IsNull(item) && *token == 'N';
		return kept ? keep_text(item, token, length, error) : 0;
	}
	cJSON *child;
	cJSON_ArrayForEach (child, item) {
		if (cJSON_IsObject(item))
			next_token(c, &token, &length); /* the child's key */
		if (keep(c, child, error) < 0)
			return -1;
	}
	return 0;
}

int smalti_json_keep(cJSON *value, const char *text, size_t length, struct smalti_error *error)
{
	struct cursor cursor = {.text = text, .length = length};
	return keep(&cursor, value, error);
}
