/* SPDX-License-Identifier: Apache-2.0 */
#include "text/cleaning.h"
#include "text/entities.h"

#include <uninorm.h>
#include <unistr.h>

static const struct {
	uint32_t character;
	const char *letters;
} ligatures[] = {
    {0x132, "IJ"},       {0x133, "ij"},  {0x149, "'n"},  {0x1c4, "D\u017d"}, {0x1c5, "D\u017e"},
    {0x1c6, "d\u017e"},  {0x1c7, "LJ"},  {0x1c8, "Lj"},  {0x1c9, "lj"},      {0x1ca, "NJ"},
    {0x1cb, "Nj"},       {0x1cc, "nj"},  {0x1f1, "DZ"},  {0x1f2, "Dz"},      {0x1f3, "dz"},
    {0xfb00, "ff"},      {0xfb01, "fi"}, {0xfb02, "fl"}, {0xfb03, "ffi"},    {0xfb04, "ffl"},
    {0xfb05, "\u017ft"}, {0xfb06, "st"},
};

static bool is_control(uint32_t c)
{
	return c < 0x09 || c == 0x0b || (c >= 0x0e && c < 0x20) || c == 0x7f || (c >= 0x206a && c < 0x2070) ||
	       c == 0xfeff || (c >= 0xfff9 && c < 0xfffd);
}

/* Writes full and half width forms as ordinary ones. */
static void put_ordinary_width(uint32_t character, FILE *to)
{
	ucs4_t ordinary[8];
	size_t count = COUNT_OF(ordinary);
	if (!u32_normalize(UNINORM_NFKC, &character, 1, ordinary, &count))
		return;
	for (size_t i = 0; i < count; i++)
		smalti_put_character(to, ordinary[i]);
}

static void put_fixed(uint32_t character, FILE *to)
{
	character = smalti_windows_1252(character);
	for (size_t i = 0; i < COUNT_OF(ligatures); i++) {
		if (character == ligatures[i].character) {
			fputs(ligatures[i].letters, to);
			return;
		}
	}
	if (character == 0x2bc || (character >= 0x2018 && character <= 0x201b))
		fputc('\'', to);
	else if (character >= 0x201c && character <= 0x201f)
		fputc('"', to);
	else if (character == 0x3000)
		fputc(' ', to);
	else if (character > 0xff00 && character < 0xfff0)
		put_ordinary_width(character, to);
	else if (!is_control(character))
		smalti_put_character(to, character);
}

/* Returns the bytes of a terminal's escape sequence (ESC [ 1 ; 31 m), 0 if there is none. */
static size_t escape_length(const char *text, size_t length)
{
	if (length < 3 || text[0] != '\033' || text[1] != '[')
		return 0;
	size_t at = 2;
	while (at < length && ((text[at] >= '0' && text[at] <= '9') || text[at] == ';'))
		at++;
	bool letter = at < length && (text[at] | 0x20) >= 'a' && (text[at] | 0x20) <= 'z';
	return letter ? at + 1 : 0;
}

static int fix_characters(struct smalti_string *string, struct smalti_error *error)
{
	struct smalti_rewriting fixed;
	if (smalti_rewrite(&fixed, error))
		return -1;
	for (size_t at = 0; at < string->length;) {
		size_t escape = escape_length(string->bytes + at, string->length - at);
		if (escape > 0) {
			at += escape;
			continue;
		}
		ucs4_t character;
		at += (size_t)u8_mbtouc(&character, (const uint8_t *)string->bytes + at, string->length - at);
		put_fixed(character, fixed.to);
	}
	return smalti_rewritten(&fixed, string, 0, error);
}

/* Runs one round; *changed: another round may find more. */
static int fix_once(struct smalti_string *string, bool unescape, bool *changed, struct smalti_error *error)
{
	struct smalti_string before;
	if (smalti_string_copy(&before, string->bytes, string->length, error))
		return -1;
	const int status = (unescape && smalti_unescape(string, true, error)) ||
				   fix_characters(string, error) || smalti_string_compose(string, error)
			       ? -1
			       : 0;
	*changed = before.length != string->length || memcmp(before.bytes, string->bytes, before.length) != 0;
	free(before.bytes);
	return status;
}

int smalti_fix_text(struct smalti_string *string, struct smalti_error *error)
{
	/* Text with tags is taken as HTML, whose references stay. */
	bool unescape = !memchr(string->bytes, '<', string->length);
	bool changed = true;
	while (changed)
		if (fix_once(string, unescape, &changed, error))
			return -1;
	return 0;
}
