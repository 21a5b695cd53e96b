/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

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

/* The bytes that padded base64 (RFC 4648, no line breaks) stands for, for free(). NULL with SMALTI_EFORMAT.
 */
uint8_t *smalti_base64_decode(const char *text, size_t *length, struct smalti_error *error);

/* The messages of a SentencePiece model (a ModelProto) of type unigram, one after the other into a stream. */

/* ModelProto.SentencePiece.type */
enum smalti_piece_type {
	SMALTI_PIECE_NORMAL = 1,
	SMALTI_PIECE_UNKNOWN = 2,
	SMALTI_PIECE_CONTROL = 3, /* has an id, is not found in text */
	SMALTI_PIECE_BYTE = 6,
};

/* In the order of their ids. */
void smalti_spiece_write_piece(FILE *to, const char *piece, float score, enum smalti_piece_type type);
/* byte_fallback: a character without a piece becomes pieces of type BYTE. */
void smalti_spiece_write_trainer(FILE *to, bool byte_fallback);
void smalti_spiece_write_normalizer(FILE *to, const uint8_t *charsmap, size_t length);

/* What a tokenizer.json does with text before it is pieces, and with the pieces after it: checked to be what
 * SentencePiece does, but for what is kept here. */
struct smalti_tokenizer_rules {
	const char *charsmap; /* base64; belongs to the file */
	int32_t eos;          /* the id behind each text, 0 or more */
};

int smalti_tokenizer_rules_read(const cJSON *file, struct smalti_tokenizer_rules *rules,
				struct smalti_error *error);

/* Calls `read` with the object file[key]; its errors, and the one that it is no object, begin with the key.
 */
typedef int smalti_tokenizer_part(const cJSON *part, void *to, struct smalti_error *error);
int smalti_tokenizer_read_part(const cJSON *file, const char *key, smalti_tokenizer_part *read, void *to,
			       struct smalti_error *error);

/* That part[key] is `wanted`, or if it is not there that `otherwise` is. */
int smalti_tokenizer_expect(const cJSON *part, const char *key, bool wanted, bool otherwise,
			    struct smalti_error *error);
