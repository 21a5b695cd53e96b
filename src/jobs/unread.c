/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "jobs/prompt_encoder.h"
#include "text/cleaning.h"

#include <ctype.h>
#include <strings.h>

enum { LIST_BYTES = 1 << 20, UNKNOWN_BYTES = 400 };

int smalti_words_read(const char *directory, char **words, struct smalti_error *error)
{
	*words = NULL;
	SCOPED(free) char *path = smalti_format(error, "%s/words.txt", directory);
	if (!path)
		return -1;
	size_t length;
	const int found = smalti_find_file(path, error);
	if (found > 0)
		*words = smalti_file_read(path, LIST_BYTES, &length, error);
	return found && !*words ? -1 : 0;
}

/* Accepts letters of any script, and digits. */
static bool in_word(char c)
{
	return isalnum((unsigned char)c) || (unsigned char)c >= 0x80;
}

/* Returns the next word from `text` on, *length bytes of it; NULL: none. */
static const char *next_word(const char *text, size_t *length)
{
	while (*text && !in_word(*text))
		text++;
	*length = 0;
	while (in_word(text[*length]))
		++*length;
	return *length ? text : NULL;
}

/* Tells whether the list has the word, in any case of its letters. */
static bool is_listed(const char *list, const char *word, size_t length)
{
	size_t found;
	for (; (list = next_word(list, &found)); list += found)
		if (found == length && strncasecmp(list, word, length) == 0)
			return true;
	return false;
}

/* Lists each word of the text that the list lacks once, with ", " between. */
static char *unknown_words(const char *list, const char *text, struct smalti_error *error)
{
	char *unknown = smalti_calloc(UNKNOWN_BYTES, 1, error);
	size_t used = 0, length;
	for (; unknown && (text = next_word(text, &length)); text += length) {
		if (is_listed(list, text, length) || is_listed(unknown, text, length) ||
		    used + length + 3 > UNKNOWN_BYTES)
			continue;
		if (used)
			used = (size_t)(stpcpy(unknown + used, ", ") - unknown);
		memcpy(unknown + used, text, length);
		used += length;
	}
	return unknown;
}

/* Tells whether the first `length` bytes of a text have no more tokens than are read: 1, 0, or -1. */
static int fits(const struct smalti_prompt_encoder *encoder, const char *text, size_t length,
		struct smalti_error *error)
{
	SCOPED(free) int32_t *ids = NULL;
	int64_t count;
	if (smalti_tokenizer_encode(encoder->tokenizer, text, length, encoder->max_tokens + 1, &ids, &count,
				    error) < 0)
		return -1;
	return count <= encoder->max_tokens;
}

/* Returns the last space of text[first … end), past `first`; 0: none. */
static size_t last_space(const char *text, size_t first, size_t end)
{
	while (end > first + 1 && text[end - 1] != ' ')
		end--;
	return end > first + 1 ? end - 1 : 0;
}

/* Returns the end of a text that does not fit: the part behind the most whole words that fit. */
static char *cut_of(const struct smalti_prompt_encoder *encoder, const char *text, size_t length,
		    struct smalti_error *error)
{
	size_t fit = 0, past = length;
	int status = 0;
	for (size_t middle; status >= 0 && past > fit + 1;) {
		middle = last_space(text, fit, fit + (past - fit) / 2 + 1);
		if (!middle)
			middle = last_space(text, fit, past);
		if (!middle)
			break;
		status = fits(encoder, text, middle, error);
		*(status > 0 ? &fit : &past) = middle;
	}
	return status < 0 ? NULL : smalti_format(error, "%s", text + fit + (text[fit] == ' '));
}

int smalti_unread_of(const struct smalti_prompt_encoder *encoder, const char *words, const char *text,
		     enum smalti_cleaning cleaning, struct smalti_unread *unread, struct smalti_error *error)
{
	*unread = (struct smalti_unread){NULL, NULL};
	size_t length;
	SCOPED(free)
	char *prepared =
	    smalti_caption_prepare(encoder->cleaner, cleaning, text, strlen(text), &length, error);
	int status = prepared ? fits(encoder, prepared, length, error) : -1;
	if (status == 0) {
		unread->truncated = cut_of(encoder, prepared, length, error);
		status = unread->truncated ? 1 : -1;
	}
	if (status > 0 && words) {
		unread->unknown = unknown_words(words, prepared, error);
		status = unread->unknown ? 1 : -1;
	}
	if (unread->unknown && !*unread->unknown) {
		free(unread->unknown);
		unread->unknown = NULL;
	}
	return status < 0 ? -1 : 0;
}

void smalti_unread_free(struct smalti_unread *unread)
{
	if (!unread)
		return;
	free(unread->truncated);
	free(unread->unknown);
	*unread = (struct smalti_unread){NULL, NULL};
}
