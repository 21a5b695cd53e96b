/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/tokenizer_json.h"

#include <float.h>

enum { MAX_IDS = 1 << 20 };

/* A piece while the file is read, which owns the text. */
struct piece {
	const char *text;
	float score;
	enum smalti_piece_type type;
};

struct source {
	struct smalti_tokenizer_rules rules;
	struct piece *pieces;
	int64_t count;
	bool byte_fallback;
};

/* Recognises <0xNN>. */
static bool is_byte(const char *text)
{
	static const char digits[] = "0123456789ABCDEF";
	return strlen(text) == 6 && memcmp(text, "<0x", 3) == 0 && strchr(digits, text[3]) &&
	       strchr(digits, text[4]) && text[5] == '>';
}

static int read_piece(const cJSON *pair, struct source *source, struct smalti_error *error)
{
	const cJSON *text = cJSON_IsArray(pair) ? pair->child : NULL;
	const cJSON *score = text ? text->next : NULL;
	if (!score || !cJSON_IsString(text) || !cJSON_IsNumber(score) || score->next ||
	    !(score->valuedouble >= -FLT_MAX && score->valuedouble <= FLT_MAX))
		return smalti_fail(error, SMALTI_EFORMAT,
				   "item %" PRId64 " of \"vocab\" should be [piece, score]", source->count);
	source->pieces[source->count++] = (struct piece){
	    text->valuestring, (float)score->valuedouble,
	    source->byte_fallback && is_byte(text->valuestring) ? SMALTI_PIECE_BYTE : SMALTI_PIECE_NORMAL};
	return 0;
}

static int read_vocabulary(const cJSON *part, struct source *source, struct smalti_error *error)
{
	const cJSON *vocab = cJSON_GetObjectItemCaseSensitive(part, "vocab"), *pair;
	const int64_t count = cJSON_IsArray(vocab) ? cJSON_GetArraySize(vocab) : 0;
	if (count < 1 || count > MAX_IDS)
		return smalti_fail(error, SMALTI_EFORMAT,
				   "\"vocab\" should be an array of 1 to %d pieces, found %" PRId64,
				   (int)MAX_IDS, count);
	source->pieces = smalti_calloc(count, sizeof(*source->pieces), error);
	if (!source->pieces)
		return -1;
	cJSON_ArrayForEach (pair, vocab)
		if (read_piece(pair, source, error))
			return -1;
	return 0;
}

static int read_model(const cJSON *part, void *to, struct smalti_error *error)
{
	static const char *const types[] = {"Unigram", NULL};
	struct source *source = to;
	int64_t unknown = 0;
	if (smalti_json_choice(part, "type", SMALTI_JSON_REQUIRED, types, &(int){0}, error) ||
	    smalti_json_bool(part, "byte_fallback", SMALTI_JSON_OPTIONAL, &source->byte_fallback, error) ||
	    read_vocabulary(part, source, error) ||
	    smalti_json_int(part, "unk_id", SMALTI_JSON_REQUIRED, 0, source->count - 1, &unknown, error))
		return -1;
	source->pieces[unknown].type = SMALTI_PIECE_UNKNOWN;
	return 0;
}

/* Hides a special token's piece from SentencePiece: the tokenizer finds it in the text before. */
static int take_out(struct source *source, const char *text, int64_t id, struct smalti_error *error)
{
	if (id >= source->count)
		return 0;
	struct piece *piece = &source->pieces[id];
	if (strcmp(piece->text, text) != 0)
		return smalti_fail(error, SMALTI_EFORMAT, "id %" PRId64 " is the piece \"%.80s\"", id,
				   piece->text);
	if (piece->type != SMALTI_PIECE_UNKNOWN)
		piece->type = SMALTI_PIECE_CONTROL;
	return 0;
}

/* Reads a special token. Stripping of white space (lstrip, rstrip) makes no difference: it never counts
 * there. */
static int read_added(const cJSON *item, struct source *source, struct smalti_tokenizer_json *tokenizer,
		      struct smalti_error *error)
{
	const char *text = "";
	int64_t id = 0;
	if (smalti_json_string(item, "content", SMALTI_JSON_REQUIRED, &text, error) ||
	    smalti_json_int(item, "id", SMALTI_JSON_REQUIRED, 0, MAX_IDS - 1, &id, error) ||
	    smalti_tokenizer_expect(item, "single_word", false, false, error) ||
	    smalti_tokenizer_expect(item, "normalized", false, false, error) ||
	    take_out(source, text, id, error)) {
		smalti_error_prefix(error, "\"added_tokens\": \"%.80s\"", text);
		return -1;
	}
	if (id >= tokenizer->vocabulary)
		tokenizer->vocabulary = id + 1;
	return smalti_special_tokens_add(&tokenizer->specials, text, (int32_t)id, error);
}

static int read_all_added(const cJSON *file, struct source *source, struct smalti_tokenizer_json *tokenizer,
			  struct smalti_error *error)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(file, "added_tokens"))
		if (read_added(item, source, tokenizer, error))
			return -1;
	return smalti_special_tokens_finish(&tokenizer->specials, error);
}

static int read_source(const cJSON *file, struct source *source, struct smalti_tokenizer_json *tokenizer,
		       struct smalti_error *error)
{
	if (smalti_tokenizer_read_part(file, "model", read_model, source, error) ||
	    smalti_tokenizer_rules_read(file, &source->rules, error))
		return -1;
	tokenizer->vocabulary = source->count;
	if (read_all_added(file, source, tokenizer, error))
		return -1;
	tokenizer->eos = source->rules.eos;
	return tokenizer->eos < tokenizer->vocabulary
		   ? 0
		   : smalti_fail(error, SMALTI_EFORMAT,
				 "\"post_processor\": adds the id %" PRId32 ", there are %" PRId64,
				 tokenizer->eos, tokenizer->vocabulary);
}

static int write_model(const struct source *source, struct smalti_tokenizer_json *tokenizer,
		       struct smalti_error *error)
{
	size_t length = 0;
	SCOPED(free) uint8_t *charsmap = smalti_base64_decode(source->rules.charsmap, &length, error);
	if (!charsmap) {
		smalti_error_prefix(error, "\"precompiled_charsmap\"");
		return -1;
	}
	FILE *to = open_memstream(&tokenizer->model, &tokenizer->length);
	for (int64_t i = 0; to && i < source->count; i++)
		smalti_spiece_write_piece(to, source->pieces[i].text, source->pieces[i].score,
					  source->pieces[i].type);
	if (to) {
		smalti_spiece_write_trainer(to, source->byte_fallback);
		smalti_spiece_write_normalizer(to, charsmap, length);
	}
	const bool whole = to && !ferror(to);
	if (!to || fclose(to) != 0 || !whole)
		return smalti_fail(error, SMALTI_ENOMEM, "no memory for its pieces");
	return 0;
}

int smalti_tokenizer_json_parse(struct smalti_tokenizer_json *tokenizer, const char *text, size_t length,
				struct smalti_error *error)
{
	struct source source = {0};
	*tokenizer = (struct smalti_tokenizer_json){0};
	SCOPED(cJSON_Delete) cJSON *file = smalti_json_parse(text, length, error);
	const int status = file && read_source(file, &source, tokenizer, error) == 0
			       ? write_model(&source, tokenizer, error)
			       : -1;
	free(source.pieces);
	return status;
}

void smalti_tokenizer_json_free(struct smalti_tokenizer_json *tokenizer)
{
	smalti_special_tokens_free(&tokenizer->specials);
	free(tokenizer->model);
	*tokenizer = (struct smalti_tokenizer_json){0};
}

uint8_t *smalti_base64_decode(const char *text, size_t *length, struct smalti_error *error)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t *bytes = smalti_calloc((int64_t)strlen(text) + 1, 1, error), *to = bytes;
	if (!bytes)
		return NULL;
	size_t done = 0;
	uint32_t bits = 0;
	for (const char *digit; text[done] && (digit = strchr(digits, text[done])); done++) {
		bits = bits << 6 | (uint32_t)(digit - digits);
		if (done % 4 > 0)
			*to++ = (uint8_t)(bits >> (6 - 2 * (done % 4)));
	}
	const size_t padding = strspn(text + done, "=");
	*length = (size_t)(to - bytes);
	if (padding <= 2 && (done + padding) % 4 == 0 && !text[done + padding])
		return bytes;
	smalti_fail(error, SMALTI_EFORMAT, "not base64 at character %zu", done);
	free(bytes);
	return NULL;
}
