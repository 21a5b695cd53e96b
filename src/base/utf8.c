/* SPDX-License-Identifier: Apache-2.0 */
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

size_t smalti_utf8_length(const char *text, size_t left)
{
	static const struct {
		unsigned char mask, lead;
		uint32_t least;
	} forms[] = {{0x80, 0x00, 0}, {0xe0, 0xc0, 0x80}, {0xf0, 0xe0, 0x800}, {0xf8, 0xf0, 0x10000}};
	const unsigned char *byte = (const unsigned char *)text;
	for (size_t extra = 0; extra < 4 && extra < left; extra++) {
		if ((byte[0] & forms[extra].mask) != forms[extra].lead)
			continue;
		uint32_t code = byte[0] & (unsigned char)~forms[extra].mask;
		for (size_t i = 1; i <= extra; i++) {
			if ((byte[i] & 0xc0) != 0x80)
				return 0;
			code = code << 6 | (byte[i] & 0x3f);
		}
		bool surrogate = code >= 0xd800 && code < 0xe000;
		return code < forms[extra].least || code > 0x10ffff || surrogate ? 0 : extra + 1;
	}
	return 0;
}

bool smalti_utf8_valid(const char *text, size_t length)
{
	for (size_t at = 0; at < length;) {
		const bool ascii = (unsigned char)text[at] < 0x80;
		size_t character = ascii ? 1 : smalti_utf8_length(text + at, length - at);
		if (!character)
			return false;
		at += character;
	}
	return true;
}

size_t smalti_utf8_mark(const char *text, size_t length)
{
	return length >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

void smalti_utf8_repair(char *text)
{
	for (size_t left = strlen(text); left > 0;) {
		const size_t length = smalti_utf8_length(text, left);
		if (length == 0)
			*text = '?';
		text += length ? length : 1;
		left -= length ? length : 1;
	}
}
