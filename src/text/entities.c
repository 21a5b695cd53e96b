/* SPDX-License-Identifier: Apache-2.0 */
#include "text/entities.h"

struct entity {
	const char *name;
	const char *text;
	bool bare; /* known without a semicolon, too */
};

static const struct entity entities[] = {
#define ENTITY(name, text, bare) {name, text, bare},
#include "text/entities.def"
#undef ENTITY
};

struct name {
	const char *bytes;
	size_t length;
};

static int compare(const void *key, const void *item)
{
	const struct name *name = key;
	const struct entity *entity = item;
	int order = strncmp(name->bytes, entity->name, name->length);
	return order != 0 ? order : -(entity->name[name->length] != 0);
}

static const struct entity *find(const char *name, size_t length)
{
	struct name key = {name, length};
	return bsearch(&key, entities, COUNT_OF(entities), sizeof(entities[0]), compare);
}

const char *smalti_entity(const char *name, size_t length)
{
	const struct entity *entity = find(name, length);
	return entity ? entity->text : NULL;
}

uint32_t smalti_windows_1252(uint32_t byte)
{
	static const uint16_t high[32] = {
	    0x20ac, 0x81,   0x201a, 0x192,  0x201e, 0x2026, 0x2020, 0x2021, 0x2c6,  0x2030, 0x160,
	    0x2039, 0x152,  0x8d,   0x17d,  0x8f,   0x90,   0x2018, 0x2019, 0x201c, 0x201d, 0x2022,
	    0x2013, 0x2014, 0x2dc,  0x2122, 0x161,  0x203a, 0x153,  0x9d,   0x17e,  0x178,
	};
	return byte >= 0x80 && byte < 0xa0 ? high[byte - 0x80] : byte;
}

uint32_t smalti_character_number(const char *digits, size_t length)
{
	const uint32_t beyond = 0x110000;
	uint32_t base = length > 0 && (digits[0] | 0x20) == 'x' ? 16 : 10, number = 0;
	for (size_t i = base == 16; i < length && number < beyond; i++)
		number = number * base +
			 (uint32_t)(digits[i] <= '9' ? digits[i] - '0' : (digits[i] | 0x20) - 'a' + 10);
	return number > 0 && number < beyond ? number : 0xfffd;
}

static size_t span(const char *text, size_t length, const char *set)
{
	size_t n = 0;
	while (n < length && text[n] != 0 && strchr(set, text[n]))
		n++;
	return n;
}

#define DIGITS "0123456789"

/* Returns the bytes of `#123`, `#x1f`, `name` at the text; 0: none. */
static size_t reference_length(const char *text, size_t length)
{
	if (length == 0 || text[0] != '#')
		return span(text, length, "abcdefghijklmnopqrstuvwxyz" DIGITS);
	bool hex = length > 1 && (text[1] | 0x20) == 'x';
	size_t prefix = hex ? 2 : 1;
	size_t digits = span(text + prefix, length - prefix, hex ? DIGITS "abcdefABCDEF" : DIGITS);
	return digits ? prefix + digits : 0;
}

/* Writes a number as HTML 5 decodes it: some are Windows-1252, controls and non-characters are dropped. */
static void put_number(FILE *to, uint32_t number)
{
	bool control = number < 0x20 && !(number >= 9 && number <= 13 && number != 11);
	bool nothing = control || number == 0x7f || (number >= 0xfdd0 && number <= 0xfdef) ||
		       ((number & 0xfffe) == 0xfffe && number < 0x110000);
	if (!nothing)
		smalti_put_character(to, smalti_windows_1252(number));
}

/* Finds the longest beginning of the name that is known without a semicolon. */
static const struct entity *find_bare(const char *name, size_t *length)
{
	for (; *length > 1; --*length) {
		const struct entity *entity = find(name, *length);
		if (entity && entity->bare)
			return entity;
	}
	return NULL;
}

/* Decodes what follows an ampersand; returns the bytes that it used, 0: it is no reference. */
static size_t put_reference(const char *text, size_t length, bool strict, FILE *to)
{
	size_t n = reference_length(text, length);
	bool ended = n > 0 && n < length && text[n] == ';';
	if (n == 0 || (strict && !ended))
		return 0;
	if (text[0] == '#') {
		put_number(to, smalti_character_number(text + 1, n - 1));
		return n + ended;
	}
	const struct entity *entity = ended ? find(text, n) : NULL;
	n += entity != NULL;
	if (!entity && !strict)
		entity = find_bare(text, &n);
	if (!entity)
		return 0;
	fputs(entity->text, to);
	return n;
}

int smalti_unescape(struct smalti_string *string, bool strict, struct smalti_error *error)
{
	const char *at = string->bytes, *end = at + string->length;
	struct smalti_rewriting unescaped;
	if (smalti_rewrite(&unescaped, error))
		return -1;
	for (const char *ampersand; (ampersand = memchr(at, '&', (size_t)(end - at)));) {
		fwrite(at, 1, (size_t)(ampersand - at), unescaped.to);
		at = ampersand + 1;
		size_t n = put_reference(at, (size_t)(end - at), strict, unescaped.to);
		if (n == 0)
			fputc('&', unescaped.to);
		at += n;
	}
	fwrite(at, 1, (size_t)(end - at), unescaped.to);
	return smalti_rewritten(&unescaped, string, 0, error);
}
