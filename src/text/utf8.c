/* SPDX-License-Identifier: Apache-2.0 */
#include "text/utf8.h"

#include "base/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <unicase.h>
#include <unictype.h>
#include <uninorm.h>
#include <unistr.h>

void smalti_put_character(FILE *to, uint32_t character)
{
	uint8_t bytes[6];
	int length = u8_uctomb(bytes, character, sizeof(bytes));
	if (length < 0)
		length = u8_uctomb(bytes, 0xfffd, sizeof(bytes));
	fwrite(bytes, 1, (size_t)length, to);
}

static void adopt(struct smalti_string *string, char *bytes, size_t length)
{
	free(string->bytes);
	*string = (struct smalti_string){bytes, length};
}

int smalti_string_rewrite(struct smalti_string *string,
			  int (*write)(const void *context, const struct smalti_string *from, FILE *to,
				       struct smalti_error *error),
			  const void *context, struct smalti_error *error)
{
	char *bytes = NULL;
	size_t length = 0;
	FILE *to = open_memstream(&bytes, &length);
	if (!to)
		return smalti_fail_errno(error, "text");
	int status = write(context, string, to, error);
	int failed = ferror(to);
	if ((fclose(to) || failed) && status == 0)
		status =
		    smalti_fail(error, SMALTI_ENOMEM, "text: no memory to rewrite %zu bytes", string->length);
	if (status)
		free(bytes);
	else
		adopt(string, bytes, length);
	return status;
}

static int write_valid(const void *context, const struct smalti_string *from, FILE *to,
		       struct smalti_error *error)
{
	(void)context;
	(void)error;
	for (size_t at = 0; at < from->length;) {
		ucs4_t character;
		at += (size_t)u8_mbtouc(&character, (const uint8_t *)from->bytes + at, from->length - at);
		smalti_put_character(to, character);
	}
	return 0;
}

int smalti_string_copy(struct smalti_string *string, const char *text, size_t length,
		       struct smalti_error *error)
{
	*string = (struct smalti_string){NULL, 0};
	char *bytes = length < INT64_MAX ? smalti_calloc((int64_t)length + 1, 1, error) : NULL;
	if (!bytes)
		return -1;
	if (length > 0)
		memcpy(bytes, text, length);
	*string = (struct smalti_string){bytes, length};
	if (!u8_check((const uint8_t *)bytes, length))
		return 0;
	if (smalti_string_rewrite(string, write_valid, NULL, error) == 0)
		return 0;
	adopt(string, NULL, 0);
	return -1;
}

/* Is the first character of [at, end) that is not case-ignorable a cased one? (Unicode's Final_Sigma) */
static bool cased_after(const uint8_t *at, const uint8_t *end)
{
	ucs4_t character = 0;
	while (at < end) {
		at += u8_mbtouc(&character, at, (size_t)(end - at));
		if (!uc_is_property_case_ignorable(character))
			return uc_is_property_cased(character);
	}
	return false;
}

/* The same for the last one of [start, at). */
static bool cased_before(const uint8_t *start, const uint8_t *at)
{
	ucs4_t character = 0;
	while ((at = u8_prev(&character, at, start)))
		if (!uc_is_property_case_ignorable(character))
			return uc_is_property_cased(character);
	return false;
}

/* u8_tolower() would do, but for what it takes as the end of a word after a sigma. */
static int write_lower(const void *context, const struct smalti_string *from, FILE *to,
		       struct smalti_error *error)
{
	(void)context;
	(void)error;
	const uint8_t *start = (const uint8_t *)from->bytes, *end = start + from->length;
	int n;
	for (const uint8_t *at = start; at < end; at += n) {
		ucs4_t character;
		n = u8_mbtouc(&character, at, (size_t)(end - at));
		if (character == 0x130) /* I with a dot: i and a combining dot */
			fputs("i\u0307", to);
		else if (character == 0x3a3 && cased_before(start, at) && !cased_after(at + n, end))
			fputs("\u03c2", to);
		else
			smalti_put_character(to, uc_tolower(character));
	}
	return 0;
}

int smalti_string_lower(struct smalti_string *string, struct smalti_error *error)
{
	return smalti_string_rewrite(string, write_lower, NULL, error);
}

int smalti_string_compose(struct smalti_string *string, struct smalti_error *error)
{
	if (string->length == 0)
		return 0;
	size_t length = 0;
	uint8_t *composed =
	    u8_normalize(UNINORM_NFC, (const uint8_t *)string->bytes, string->length, NULL, &length);
	if (!composed)
		return smalti_fail(error, SMALTI_ENOMEM, "text: no memory for %zu bytes", string->length);
	adopt(string, (char *)composed, length);
	return 0;
}

/* Python's str.isspace(): White_Space and the four ASCII separators. */
static bool is_space(ucs4_t character)
{
	static const struct {
		ucs4_t first, last;
	} ranges[] = {
	    {0x09, 0x0d},     {0x1c, 0x20},     {0x85, 0x85},     {0xa0, 0xa0},     {0x1680, 0x1680},
	    {0x2000, 0x200a}, {0x2028, 0x2029}, {0x202f, 0x202f}, {0x205f, 0x205f}, {0x3000, 0x3000},
	};
	for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
		if (character >= ranges[i].first && character <= ranges[i].last)
			return true;
	return false;
}

void smalti_string_strip(struct smalti_string *string)
{
	const uint8_t *start = (const uint8_t *)string->bytes, *end = start + string->length;
	ucs4_t character;
	for (int n; start < end; start += n) {
		n = u8_mbtouc(&character, start, (size_t)(end - start));
		if (!is_space(character))
			break;
	}
	while (start < end) {
		const uint8_t *last = u8_prev(&character, end, start);
		if (!last || !is_space(character))
			break;
		end = last;
	}
	string->length = (size_t)(end - start);
	if (string->length > 0)
		memmove(string->bytes, start, string->length);
}
