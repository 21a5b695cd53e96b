/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

#include "base/alloc.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static int value_of(char digit)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *at = digit ? strchr(digits, digit) : NULL;
	return at ? (int)(at - digits) : -1;
}

static size_t padding_of(const char *text, size_t length)
{
	if (length == 0 || text[length - 1] != '=')
		return 0;
	return text[length - 2] == '=' ? 2 : 1;
}

/* Adds the six bits of digit `i`; false when it is none. */
static bool add_digit(uint8_t *bytes, size_t i, char digit)
{
	const int value = value_of(digit), part = (int)(i % 4);
	uint8_t *at = bytes + i / 4 * 3 + part;
	if (value < 0)
		return false;
	if (part > 0)
		at[-1] |= (uint8_t)(value << (2 * part) >> 6);
	if (part < 3)
		*at = (uint8_t)(value << (2 + 2 * part));
	return true;
}

uint8_t *smalti_base64_decode(const char *text, size_t *length, struct smalti_error *error)
{
	const size_t digits = strlen(text);
	const size_t padding = digits % 4 == 0 ? padding_of(text, digits) : 0;
	uint8_t *bytes = smalti_calloc((int64_t)(digits / 4 * 3) + 1, 1, error);
	if (!bytes)
		return NULL;
	size_t done = 0;
	while (digits % 4 == 0 && done < digits - padding && add_digit(bytes, done, text[done]))
		done++;
	*length = digits / 4 * 3 - padding;
	if (digits % 4 == 0 && done == digits - padding)
		return bytes;
	smalti_fail(error, SMALTI_EFORMAT, "not base64 at character %zu", done);
	free(bytes);
	return NULL;
}
