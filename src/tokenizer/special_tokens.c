/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/tokenizer_json.h"

enum { MAX_TOKENS = 1 << 14 };

int smalti_special_tokens_add(struct smalti_special_tokens *tokens, const char *text, int32_t id,
			      struct smalti_error *error)
{
	const size_t length = strlen(text);
	if (length == 0 || length > SMALTI_SPECIAL_BYTES)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "the special token \"%.80s\" has %zu bytes, 1 to %d are allowed", text,
				   length, (int)SMALTI_SPECIAL_BYTES);
	if (tokens->count == MAX_TOKENS)
		return smalti_fail(error, SMALTI_EUNSUPPORTED, "more than %d special tokens",
				   (int)MAX_TOKENS);
	if (smalti_grow(&tokens->items, tokens->count, sizeof(*tokens->items), error) < 0)
		return -1;
	struct smalti_special_token *token = &tokens->items[tokens->count++];
	memcpy(token->text, text, length + 1);
	token->id = id;
	tokens->begins[(unsigned char)text[0]] = true;
	return 0;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(((const struct smalti_special_token *)a)->text,
		      ((const struct smalti_special_token *)b)->text);
}

int smalti_special_tokens_finish(struct smalti_special_tokens *tokens, struct smalti_error *error)
{
	if (tokens->count)
		qsort(tokens->items, (size_t)tokens->count, sizeof(*tokens->items), by_text);
	for (int64_t i = 1; i < tokens->count; i++)
		if (by_text(&tokens->items[i - 1], &tokens->items[i]) == 0)
			return smalti_fail(error, SMALTI_EFORMAT, "the special token \"%s\" is there twice",
					   tokens->items[i].text);
	return 0;
}

void smalti_special_tokens_free(struct smalti_special_tokens *tokens)
{
	free(tokens->items);
	*tokens = (struct smalti_special_tokens){0};
}

/* Returns the first of the sorted items [first, end) whose byte at `depth` is `byte` or more. The items agree
 * in their first `depth` bytes. */
static int64_t lower_bound(const struct smalti_special_tokens *tokens, int64_t first, int64_t end,
			   size_t depth, int byte)
{
	while (first < end) {
		const int64_t middle = first + (end - first) / 2;
		if ((unsigned char)tokens->items[middle].text[depth] < byte)
			first = middle + 1;
		else
			end = middle;
	}
	return first;
}

/* Returns the longest token that `text` begins with; NULL: none. */
static const struct smalti_special_token *match(const struct smalti_special_tokens *tokens, const char *text,
						size_t length)
{
	const struct smalti_special_token *longest = NULL;
	int64_t first = 0, end = tokens->count;
	for (size_t depth = 0; depth < length && text[depth]; depth++) {
		const int byte = (unsigned char)text[depth];
		first = lower_bound(tokens, first, end, depth, byte);
		end = lower_bound(tokens, first, end, depth, byte + 1);
		if (first == end)
			break;
		if (tokens->items[first].text[depth + 1] == '\0')
			longest = &tokens->items[first];
	}
	return longest;
}

size_t smalti_special_tokens_find(const struct smalti_special_tokens *tokens, const char *text, size_t length,
				  size_t at, const struct smalti_special_token **token)
{
	for (; at < length; at++) {
		*token =
		    tokens->begins[(unsigned char)text[at]] ? match(tokens, text + at, length - at) : NULL;
		if (*token)
			return at;
	}
	*token = NULL;
	return length;
}
