/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>
#include <unistr.h>

size_t smalti_utf8_length(const char *text, size_t left)
{
	ucs4_t character;
	const int length = left > 0 ? u8_mbtoucr(&character, (const uint8_t *)text, left) : 0;
	return length > 0 ? (size_t)length : 0;
}

bool smalti_utf8_valid(const char *text, size_t length)
{
	return !u8_check((const uint8_t *)text, length);
}

size_t smalti_utf8_mark(const char *text, size_t length)
{
	return length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

void smalti_utf8_repair(char *text)
{
	const char *end = text + strlen(text);
	const uint8_t *bad;
	while ((bad = u8_check((const uint8_t *)text, (size_t)(end - text)))) {
		text += (const char *)bad - text;
		*text++ = '?';
	}
}
