/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TOKENIZER_TOKENIZER_JSON_H
#define SMALTI_TOKENIZER_TOKENIZER_JSON_H

#include "tokenizer/special_tokens.h"

/* A tokenizer.json (the format of Hugging Face's tokenizers) as a SentencePiece model that makes the same
 * tokens. Of that format it may hold what T5's have in any version: a Unigram model, a Precompiled character
 * map, white space that separates words and is a piece's first character, special tokens, and an end mark
 * behind the text. SMALTI_EUNSUPPORTED names what else is in it. */
struct smalti_tokenizer_json {
	char *model; /* a ModelProto, for smalti_spiece_sanitize() */
	size_t length;
	struct smalti_special_tokens specials; /* finished */
	int32_t eos;                           /* the end mark */
	int64_t vocabulary;                    /* ids are below it */
};

enum { SMALTI_TOKENIZER_JSON_BYTES = 20 << 20 }; /* longest text; a vocabulary of 250,000 takes 17 MB */

/* Free it in any case. */
int smalti_tokenizer_json_parse(struct smalti_tokenizer_json *tokenizer, const char *text, size_t length,
				struct smalti_error *error);
void smalti_tokenizer_json_free(struct smalti_tokenizer_json *tokenizer);

#endif
