/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/tokenizer.h"
#include "base/file.h"
#include "base/json_fields.h"
#include "checkpoint/pipeline_directory.h"
#include "tokenizer/sentencepiece_shim.h"
#include "tokenizer/spiece.h"
#include "tokenizer/tokenizer_json.h"

enum { MODEL_BYTES = 16 << 20, MAX_EXTRA_IDS = 10000 };

/* Longer text is cut for SentencePiece, because its time grows with the square of a run of unknown
 * characters. A cut at a space changes nothing: no piece of T5 crosses one. */
enum { STRETCH_BYTES = 4096 };

struct smalti_tokenizer {
	struct smalti_sentencepiece *model;
	struct smalti_special_tokens specials;
	int32_t eos;
	bool ends_always; /* end-of-sentence also follows a text that ends with it */
	int64_t vocabulary;
};

char *smalti_tokenizer_file(const char *directory, struct smalti_error *error)
{
	static const char *const names[] = {"spiece.model", "tokenizer.json"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		char *path = smalti_format(error, "%s/%s", directory, names[i]);
		const int found = path ? smalti_find_file(path, error) : -1;
		if (found > 0)
			return path;
		free(path);
		if (found < 0)
			return NULL;
	}
	smalti_fail(error, SMALTI_EIO,
		    "%s: neither %s nor %s is there; fetch the model's tokenizer directory again", directory,
		    names[0], names[1]);
	return NULL;
}

/* Opens the model, after sanitizing its bytes in place. */
static int open_model(struct smalti_tokenizer *tokenizer, char *model, size_t length,
		      struct smalti_error *error)
{
	if (smalti_spiece_sanitize((uint8_t *)model, &length, error))
		return -1;
	tokenizer->model = smalti_sentencepiece_open(model, length, error);
	return tokenizer->model ? 0 : -1;
}

static int read_extra_ids(const char *directory, int64_t *extra_ids, struct smalti_error *error)
{
	*extra_ids = 100;
	SCOPED(free) char *path = smalti_format(error, "%s/tokenizer_config.json", directory);
	if (!path)
		return -1;
	int status = smalti_find_file(path, error);
	if (status > 0) {
		cJSON *config = smalti_config_open(path, error);
		status = config ? smalti_json_int(config, "extra_ids", SMALTI_JSON_NULLABLE, 0, MAX_EXTRA_IDS,
						  extra_ids, error)
				: -1;
		status = smalti_config_close(config, path, status, error);
	}
	return status;
}

/* Adds <extra_id_0>, the last id, <extra_id_1>, the one before it, and so on. */
static int add_extra_ids(struct smalti_tokenizer *tokenizer, const char *directory,
			 struct smalti_error *error)
{
	int64_t extra_ids = 0;
	int status = read_extra_ids(directory, &extra_ids, error);
	tokenizer->vocabulary = smalti_sentencepiece_count(tokenizer->model) + extra_ids;
	for (int64_t i = 0; i < extra_ids && !status; i++) {
		char name[32];
		snprintf(name, sizeof(name), "<extra_id_%d>", (int)i);
		status = smalti_special_tokens_add(&tokenizer->specials, name,
						   (int32_t)(tokenizer->vocabulary - 1 - i), error);
	}
	return status ? -1 : smalti_special_tokens_finish(&tokenizer->specials, error);
}

static int add_specials(struct smalti_tokenizer *tokenizer, struct smalti_error *error)
{
	static const char *const names[] = {"</s>", "<pad>", "<unk>"};
	for (size_t i = 0; i < COUNT_OF(names); i++) {
		const int32_t id = smalti_sentencepiece_id(tokenizer->model, names[i]);
		if (id < 0)
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "a T5 model has a piece %s, this one has not", names[i]);
		if (smalti_special_tokens_add(&tokenizer->specials, names[i], id, error))
			return -1;
	}
	tokenizer->eos = tokenizer->specials.items[0].id;
	return 0;
}

static int open_json(struct smalti_tokenizer *tokenizer, const char *text, size_t length,
		     struct smalti_error *error)
{
	struct smalti_tokenizer_json json;
	int status = smalti_tokenizer_json_parse(&json, text, length, error);
	if (!status)
		status = open_model(tokenizer, json.model, json.length, error);
	if (!status) {
		tokenizer->specials = json.specials;
		tokenizer->eos = json.eos;
		tokenizer->ends_always = true;
		tokenizer->vocabulary = json.vocabulary;
		json.specials = (struct smalti_special_tokens){0};
	}
	smalti_tokenizer_json_free(&json);
	return status;
}

/* Adds the path and a remedy to errors. */
static int open_bytes(struct smalti_tokenizer *tokenizer, const char *path, char *bytes, size_t length,
		      bool is_json, struct smalti_error *error)
{
	struct smalti_error cause = SMALTI_NO_ERROR;
	if (smalti_pointer_check(bytes, length, &cause))
		return smalti_fail(error, cause.code, "%s: %s", path, cause.message);
	const int status = is_json ? open_json(tokenizer, bytes, length, &cause)
			   : open_model(tokenizer, bytes, length, &cause) || add_specials(tokenizer, &cause)
			       ? -1
			       : 0;
	if (!status)
		return 0;
	const char *remedy = cause.code == SMALTI_EUNSUPPORTED
				 ? "use the tokenizer of a PixArt model"
				 : "fetch the model's tokenizer directory again";
	return smalti_fail(error, cause.code, "%s: %s; %s", path, cause.message, remedy);
}

static int open_file(struct smalti_tokenizer *tokenizer, const char *directory, struct smalti_error *error)
{
	SCOPED(free) char *path = smalti_tokenizer_file(directory, error);
	const bool is_json = path && strcmp(path + strlen(path) - 5, ".json") == 0;
	size_t length = 0;
	SCOPED(free)
	char *bytes =
	    path ? smalti_file_read(path, is_json ? SMALTI_TOKENIZER_JSON_BYTES : MODEL_BYTES, &length, error)
		 : NULL;
	int status = bytes ? open_bytes(tokenizer, path, bytes, length, is_json, error) : -1;
	if (!status && !is_json)
		status = add_extra_ids(tokenizer, directory, error);
	return status;
}

struct smalti_tokenizer *smalti_tokenizer_open(const char *directory, struct smalti_error *error)
{
	struct smalti_tokenizer *tokenizer = smalti_calloc(1, sizeof(*tokenizer), error);
	if (tokenizer && open_file(tokenizer, directory, error) == 0)
		return tokenizer;
	smalti_tokenizer_close(tokenizer);
	return NULL;
}

void smalti_tokenizer_close(struct smalti_tokenizer *tokenizer)
{
	if (!tokenizer)
		return;
	smalti_sentencepiece_close(tokenizer->model);
	smalti_special_tokens_free(&tokenizer->specials);
	free(tokenizer);
}

int64_t smalti_tokenizer_vocabulary(const struct smalti_tokenizer *tokenizer)
{
	return tokenizer->vocabulary;
}

/* Returns where to cut a long text: at the last space, else at the last character. */
static size_t stretch_end(const char *text, size_t length, size_t at)
{
	if (length - at <= STRETCH_BYTES)
		return length;
	const char *space = memrchr(text + at + 1, ' ', STRETCH_BYTES - 1);
	if (space)
		return (size_t)(space - text);
	size_t end = at + STRETCH_BYTES;
	for (int i = 0; i < 3 && ((unsigned char)text[end] & 0xc0) == 0x80; i++)
		end--;
	return end;
}

/* The ids so far. */
struct ids {
	int32_t *items;
	int64_t count, capacity;
};

/* Encodes text without special tokens, until the ids are full. */
static int encode_plain(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
			struct ids *ids, struct smalti_error *error)
{
	for (size_t at = 0; at < length && ids->count < ids->capacity;) {
		size_t end = stretch_end(text, length, at);
		int64_t added;
		if (smalti_sentencepiece_encode(tokenizer->model, text + at, end - at,
						ids->capacity - ids->count, ids->items + ids->count, &added,
						error))
			return -1;
		ids->count += added;
		at = end;
	}
	return 0;
}

/* Encodes all but the final end-of-sentence, until the ids are full. Text between special tokens is tokenized
 * on its own. */
static int encode_all(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
		      struct ids *ids, struct smalti_error *error)
{
	for (size_t at = 0; at < length && ids->count < ids->capacity;) {
		const struct smalti_special_token *token;
		const size_t end = smalti_special_tokens_find(&tokenizer->specials, text, length, at, &token);
		if (encode_plain(tokenizer, text + at, end - at, ids, error))
			return -1;
		if (token && ids->count < ids->capacity)
			ids->items[ids->count++] = token->id;
		at = end + (token ? strlen(token->text) : 0);
	}
	return 0;
}

int smalti_tokenizer_encode(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
			    int64_t max_length, int32_t **ids, int64_t *count, struct smalti_error *error)
{
	if (max_length < 1 || max_length > SMALTI_TEXT_BYTES)
		return smalti_fail(error, SMALTI_EINVAL, "text: a limit of %lld tokens, expected 1 to %d",
				   (long long)max_length, (int)SMALTI_TEXT_BYTES);
	if (length > SMALTI_TEXT_BYTES)
		return smalti_fail(
		    error, SMALTI_EINVAL,
		    "text: %zu bytes, at most %d are allowed; shorten it (only its first %lld tokens count)",
		    length, (int)SMALTI_TEXT_BYTES, (long long)max_length - 1);
	struct ids found = {smalti_calloc(max_length, sizeof(int32_t), error), 0, max_length - 1};
	if (!found.items)
		return -1;
	if (encode_all(tokenizer, text, length, &found, error)) {
		free(found.items);
		return -1;
	}
	if (tokenizer->ends_always || found.count == 0 || found.items[found.count - 1] != tokenizer->eos)
		found.items[found.count++] = tokenizer->eos;
	*ids = found.items;
	*count = found.count;
	return 0;
}
