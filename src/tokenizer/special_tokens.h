/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TOKENIZER_SPECIAL_TOKENS_H
#define SMALTI_TOKENIZER_SPECIAL_TOKENS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Words that are one token wherever they stand in a text, as `</s>` and `<extra_id_0>`. Initialise with
 * zeros. */
struct smalti_special_tokens {
	struct smalti_special_token *items;
	int64_t count;
	bool begins[256]; /* some word begins with that byte */
};

enum { SMALTI_SPECIAL_BYTES = 63 };

struct smalti_special_token {
	char text[SMALTI_SPECIAL_BYTES + 1];
	int32_t id;
};

/* SMALTI_EUNSUPPORTED for a word that is empty or longer than SMALTI_SPECIAL_BYTES, and for too many. */
int smalti_special_tokens_add(struct smalti_special_tokens *tokens, const char *text, int32_t id,
			      struct smalti_error *error);
/* After the last was added; SMALTI_EFORMAT when a word is there twice. */
int smalti_special_tokens_finish(struct smalti_special_tokens *tokens, struct smalti_error *error);
void smalti_special_tokens_free(struct smalti_special_tokens *tokens);

/* The first one in text[at, length), of several at one place the longest: returns where it begins and sets
 * *token; `length` and NULL when there is none. */
size_t smalti_special_tokens_find(const struct smalti_special_tokens *tokens, const char *text, size_t length,
				  size_t at, const struct smalti_special_token **token);

#endif
