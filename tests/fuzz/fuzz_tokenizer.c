/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "tokenizer/sentencepiece_shim.h"
#include "tokenizer/spiece.h"
#include "tokenizer/tokenizer_json.h"

#include <stdlib.h>
#include <string.h>

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void encode(const struct smalti_sentencepiece *model, const struct smalti_tokenizer_json *tokenizer)
{
	static const char text[] =
	    "A \xef\xac\x81ne </s><unk><extra_id_1> st\xc3\xa4r\t\xe2\x91\xa0 \xff\x00 z";
	const struct smalti_special_token *token;
	int32_t ids[64];
	int64_t count = 0;
	for (size_t at = 0; at < sizeof(text) - 1; at += token ? strlen(token->text) : 0) {
		at = smalti_special_tokens_find(&tokenizer->specials, text, sizeof(text) - 1, at, &token);
		require(at <= sizeof(text) - 1 && (!token || (token->text[0] && token->id >= 0)));
		require(!token || token->id < tokenizer->vocabulary);
	}
	if (smalti_sentencepiece_encode(model, text, sizeof(text) - 1, 64, ids, &count, NULL) == 0)
		for (int64_t i = 0; i < count; i++)
			require(ids[i] >= 0 && ids[i] < tokenizer->vocabulary);
}

/* Whatever the file, it is refused, or it makes a model that SentencePiece opens or refuses, and it encodes.
 */
FUZZER(data, size)
{
	struct smalti_tokenizer_json tokenizer;
	if (smalti_tokenizer_json_parse(&tokenizer, (const char *)data, size, NULL) == 0) {
		require(tokenizer.eos >= 0 && tokenizer.eos < tokenizer.vocabulary);
		struct smalti_sentencepiece *model = NULL;
		if (smalti_spiece_sanitize((uint8_t *)tokenizer.model, &tokenizer.length, NULL) == 0)
			model = smalti_sentencepiece_open(tokenizer.model, tokenizer.length, NULL);
		if (model)
			encode(model, &tokenizer);
		smalti_sentencepiece_close(model);
	}
	smalti_tokenizer_json_free(&tokenizer);
	return 0;
}
