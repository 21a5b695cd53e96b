/* SPDX-License-Identifier: Apache-2.0 */
#include "text/utf8.h"

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

int smalti_rewrite(struct smalti_rewriting *rewriting, struct smalti_error *error)
{
	*rewriting = (struct smalti_rewriting){.to = NULL};
	rewriting->to = open_memstream(&rewriting->bytes, &rewriting->length);
	return rewriting->to ? 0 : smalti_fail_errno(error, "text");
}

int smalti_rewritten(struct smalti_rewriting *rewriting, struct smalti_string *string, int status,
		     struct smalti_error *error)
{
	const bool failed = ferror(rewriting->to);
	if ((fclose(rewriting->to) || failed) && status == 0)
		status =
		    smalti_fail(error, SMALTI_ENOMEM, "text: no memory to rewrite %zu bytes", string->length);
	free(status ? rewriting->bytes : string->bytes);
	if (status == 0)
		*string = (struct smalti_string){rewriting->bytes, rewriting->length};
	return status;
}

int smalti_string_copy(struct smalti_string *string, const char *text, size_t length,
		       struct smalti_error *error)
{
	struct smalti_rewriting copy;
	*string = (struct smalti_string){NULL, 0};
	if (smalti_rewrite(&copy, error))
		return -1;
	for (size_t at = 0; at < length;) {
		ucs4_t character;
		at += (size_t)u8_mbtouc(&character, (const uint8_t *)text + at, length - at);
		smalti_put_character(copy.to, character);
	}
	return smalti_rewritten(&copy, string, 0, error);
}

/* Tells whether the first character of [at, end) that is not case-ignorable is cased (Unicode's Final_Sigma).
 */
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

/* Tells this of the last character of [start, at). */
static bool cased_before(const uint8_t *start, const uint8_t *at)
{
	ucs4_t character = 0;
	while ((at = u8_prev(&character, at, start)))
		if (!uc_is_property_case_ignorable(character))
			return uc_is_property_cased(character);
	return false;
}

/* Does not use u8_tolower(), which finds the end of a word after a sigma by another rule. */
int smalti_string_lower(struct smalti_string *string, struct smalti_error *error)
{
	const uint8_t *start = (const uint8_t *)string->bytes, *end = start + string->length;
	struct smalti_rewriting lower;
	if (smalti_rewrite(&lower, error))
		return -1;
	int n;
	for (const uint8_t *at = start; at < end; at += n) {
		ucs4_t character;
		n = u8_mbtouc(&character, at, (size_t)(end - at));
		if (character == 0x130) /* I with a dot: i and a combining dot */
			fputs("i\u0307", lower.to);
		else if (character == 0x3a3 && cased_before(start, at) && !cased_after(at + n, end))
			fputs("\u03c2", lower.to);
		else
			smalti_put_character(lower.to, uc_tolower(character));
	}
	return smalti_rewritten(&lower, string, 0, error);
}

int smalti_string_compose(struct smalti_string *string, struct smalti_error *error)
{
	size_t length = 0; /* with the NUL, which stays itself */
	uint8_t *composed =
	    u8_normalize(UNINORM_NFC, (const uint8_t *)string->bytes, string->length + 1, NULL, &length);
	if (!composed)
		return smalti_fail(error, SMALTI_ENOMEM, "text: no memory for %zu bytes", string->length);
	free(string->bytes);
	*string = (struct smalti_string){(char *)composed, length - 1};
	return 0;
}

/* Tells what Python's str.isspace() does: White_Space and the four ASCII separators. */
static bool is_space(ucs4_t character)
{
	return uc_is_property_white_space(character) || (character >= 0x1c && character <= 0x1f);
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
	memmove(string->bytes, start, string->length);
	string->bytes[string->length] = '\0';
}
