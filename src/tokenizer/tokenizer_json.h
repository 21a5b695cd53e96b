/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* Words that are one token anywhere in a text, such as `</s>` and `<extra_id_0>`. Initialise with zeros. */
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

/* Adds a word. SMALTI_EUNSUPPORTED: it is empty or longer than SMALTI_SPECIAL_BYTES, or there are too many.
 */
int smalti_special_tokens_add(struct smalti_special_tokens *tokens, const char *text, int32_t id,
			      struct smalti_error *error);
/* Sorts all words in the end; SMALTI_EFORMAT: a word is there twice. */
int smalti_special_tokens_finish(struct smalti_special_tokens *tokens, struct smalti_error *error);
void smalti_special_tokens_free(struct smalti_special_tokens *tokens);

/* Returns where the first word in text[at, length) begins, and the longest word there in *token; `length` and
 * NULL: there is none. */
size_t smalti_special_tokens_find(const struct smalti_special_tokens *tokens, const char *text, size_t length,
				  size_t at, const struct smalti_special_token **token);

/* A tokenizer.json (the format of Hugging Face's tokenizers) as a SentencePiece model that makes the same
 * tokens. It may have what T5's files have in any version: a Unigram model, a Precompiled character map,
 * white space that separates words and is a piece's first character, special tokens, and an end mark behind
 * the text. SMALTI_EUNSUPPORTED names anything else in it. */
struct smalti_tokenizer_json {
	char *model; /* a ModelProto, for smalti_spiece_sanitize() */
	size_t length;
	struct smalti_special_tokens specials; /* finished */
	int32_t eos;                           /* the end mark */
	int64_t vocabulary;                    /* ids are below it */
};

enum { SMALTI_TOKENIZER_JSON_BYTES = 20 << 20 }; /* longest text; a vocabulary of 250,000 takes 17 MB */

/* Parses the text; free it in any case. */
int smalti_tokenizer_json_parse(struct smalti_tokenizer_json *tokenizer, const char *text, size_t length,
				struct smalti_error *error);
void smalti_tokenizer_json_free(struct smalti_tokenizer_json *tokenizer);

/* Decodes padded base64 (RFC 4648, no line breaks), for free(). NULL with SMALTI_EFORMAT. */
uint8_t *smalti_base64_decode(const char *text, size_t *length, struct smalti_error *error);

/* These write the messages of a SentencePiece model (a ModelProto) of type unigram to a stream, one by one.
 */

/* ModelProto.SentencePiece.type */
enum smalti_piece_type {
	SMALTI_PIECE_NORMAL = 1,
	SMALTI_PIECE_UNKNOWN = 2,
	SMALTI_PIECE_CONTROL = 3, /* has an id, is not found in text */
	SMALTI_PIECE_BYTE = 6,
};

/* Writes a piece, in the order of ids. */
void smalti_spiece_write_piece(FILE *to, const char *piece, float score, enum smalti_piece_type type);
/* Writes settings; byte_fallback: a character without a piece becomes pieces of type BYTE. */
void smalti_spiece_write_trainer(FILE *to, bool byte_fallback);
void smalti_spiece_write_normalizer(FILE *to, const uint8_t *charsmap, size_t length);

/* What a tokenizer.json does with text before it becomes pieces, and with the pieces. It is checked to equal
 * SentencePiece, except for the values here. */
struct smalti_tokenizer_rules {
	const char *charsmap; /* base64; belongs to the file */
	int32_t eos;          /* the id behind each text, 0 or more */
};

int smalti_tokenizer_rules_read(const cJSON *file, struct smalti_tokenizer_rules *rules,
				struct smalti_error *error);

/* Calls `read` with the object file[key]. Its errors begin with the key, also the one that it is no object.
 */
typedef int smalti_tokenizer_part(const cJSON *part, void *to, struct smalti_error *error);
int smalti_tokenizer_read_part(const cJSON *file, const char *key, smalti_tokenizer_part *read, void *to,
			       struct smalti_error *error);

/* Checks that part[key] is `wanted`, or if it is absent, that `otherwise` is. */
int smalti_tokenizer_expect(const cJSON *part, const char *key, bool wanted, bool otherwise,
			    struct smalti_error *error);
