/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tokenizer.h"

#include "base/alloc.h"
#include "base/file.h"
#include "base/json.h"
#include "io/sentencepiece_shim.h"
#include "io/spiece.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MODEL_BYTES = 16 << 20, CONFIG_BYTES = 1 << 20, MAX_EXTRA_IDS = 10000 };

/* Longer text goes to SentencePiece in stretches, because its time grows with the square of a run of
 * unknown characters. Cutting at a space changes nothing: no piece of T5 goes across one. */
enum { STRETCH_BYTES = 4096 };

enum special { EOS, PAD, UNK, SPECIALS };
static const char *const special_names[SPECIALS] = {[EOS] = "</s>", [PAD] = "<pad>", [UNK] = "<unk>"};

struct smalti_tokenizer {
	struct smalti_sentencepiece *model;
	int32_t special[SPECIALS];
	int32_t pieces;
	int32_t extra_ids; /* <extra_id_K> is pieces + extra_ids - 1 - K */
};

static int find_specials(struct smalti_tokenizer *tokenizer, struct smalti_error *error)
{
	tokenizer->pieces = smalti_sentencepiece_count(tokenizer->model);
	for (int i = 0; i < SPECIALS; i++) {
		tokenizer->special[i] = smalti_sentencepiece_id(tokenizer->model, special_names[i]);
		if (tokenizer->special[i] < 0)
			return smalti_fail(error, SMALTI_EUNSUPPORTED,
					   "a T5 model has a piece %s, this one has not", special_names[i]);
	}
	return 0;
}

static int open_model(struct smalti_tokenizer *tokenizer, const char *folder, struct smalti_error *error)
{
	char *path = smalti_format(error, "%s/spiece.model", folder);
	size_t length = 0;
	char *bytes = path ? smalti_file_read(path, MODEL_BYTES, &length, error) : NULL;
	int status = -1;
	if (bytes) {
		struct smalti_error cause = SMALTI_NO_ERROR;
		status = smalti_spiece_sanitize((uint8_t *)bytes, &length, &cause);
		if (status == 0)
			tokenizer->model = smalti_sentencepiece_open(bytes, length, &cause);
		status = tokenizer->model ? find_specials(tokenizer, &cause) : -1;
		if (status)
			smalti_fail(error, cause.code, "%s: %s; fetch the model's tokenizer folder again",
				    path, cause.message);
	}
	free(bytes);
	free(path);
	return status;
}

static int read_config(struct smalti_tokenizer *tokenizer, const char *folder, struct smalti_error *error)
{
	tokenizer->extra_ids = 100;
	char *path = smalti_format(error, "%s/tokenizer_config.json", folder);
	if (!path)
		return -1;
	int status = 0;
	if (access(path, F_OK) == 0) {
		cJSON *config = smalti_json_read(path, CONFIG_BYTES, error);
		int64_t extra_ids = tokenizer->extra_ids;
		status = config ? smalti_json_int(config, "extra_ids", SMALTI_JSON_NULLABLE, 0, MAX_EXTRA_IDS,
						  &extra_ids, error)
				: -1;
		if (config && status)
			smalti_error_prefix(error, "%s", path);
		cJSON_Delete(config);
		tokenizer->extra_ids = (int32_t)extra_ids;
	}
	free(path);
	return status;
}

struct smalti_tokenizer *smalti_tokenizer_open(const char *folder, struct smalti_error *error)
{
	struct smalti_tokenizer *tokenizer = smalti_calloc(1, sizeof(*tokenizer), error);
	if (!tokenizer)
		return NULL;
	if (open_model(tokenizer, folder, error) || read_config(tokenizer, folder, error)) {
		smalti_tokenizer_close(tokenizer);
		return NULL;
	}
	return tokenizer;
}

void smalti_tokenizer_close(struct smalti_tokenizer *tokenizer)
{
	if (tokenizer)
		smalti_sentencepiece_close(tokenizer->model);
	free(tokenizer);
}

int64_t smalti_tokenizer_vocabulary(const struct smalti_tokenizer *tokenizer)
{
	return (int64_t)tokenizer->pieces + tokenizer->extra_ids;
}

static bool starts_with(const char *text, size_t length, const char *word)
{
	return length >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

/* The bytes of `<extra_id_K>` at `text`, 0 if there is none; no sign, no leading zero. */
static size_t match_extra_id(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
			     int32_t *id)
{
	static const char prefix[] = "<extra_id_";
	size_t at = sizeof(prefix) - 1;
	if (!starts_with(text, length, prefix))
		return 0;
	int32_t number = 0;
	size_t digits = 0;
	for (; at < length && text[at] >= '0' && text[at] <= '9' && number < MAX_EXTRA_IDS; at++, digits++)
		number = number * 10 + (text[at] - '0');
	bool padded = digits > 1 && text[sizeof(prefix) - 1] == '0';
	if (digits == 0 || padded || number >= tokenizer->extra_ids || at == length || text[at] != '>')
		return 0;
	*id = tokenizer->pieces + tokenizer->extra_ids - 1 - number;
	return at + 1;
}

/* The bytes of the special token at `text`, 0 if there is none. */
static size_t match_special(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
			    int32_t *id)
{
	for (int i = 0; i < SPECIALS; i++) {
		if (starts_with(text, length, special_names[i])) {
			*id = tokenizer->special[i];
			return strlen(special_names[i]);
		}
	}
	return match_extra_id(tokenizer, text, length, id);
}

/* The next special token in [at, length): its start, `length` if there is none. The text up to it is
 * tokenized on its own. T5Tokenizer strips white space around extra ids: SentencePiece does that
 * anyway at both ends of a stretch. */
static size_t find_special(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
			   size_t at, size_t *bytes, int32_t *id)
{
	for (; at < length; at++) {
		const char *bracket = memchr(text + at, '<', length - at);
		if (!bracket)
			break;
		at = (size_t)(bracket - text);
		*bytes = match_special(tokenizer, text + at, length - at, id);
		if (*bytes > 0)
			return at;
	}
	*bytes = 0;
	return length;
}

/* Where to cut text that is too long for one go: the last space, else the last character. */
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

/* Ids under construction. */
struct ids {
	int32_t *items;
	int64_t count, capacity;
};

/* Text without special tokens, until the ids are full. */
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

/* Everything but the final end-of-sentence, until the ids are full. */
static int encode_all(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
		      struct ids *ids, struct smalti_error *error)
{
	for (size_t at = 0; at < length && ids->count < ids->capacity;) {
		size_t bytes;
		int32_t id = 0;
		size_t special = find_special(tokenizer, text, length, at, &bytes, &id);
		if (encode_plain(tokenizer, text + at, special - at, ids, error))
			return -1;
		if (bytes > 0 && ids->count < ids->capacity)
			ids->items[ids->count++] = id;
		at = special + bytes;
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
	if (found.count == 0 || found.items[found.count - 1] != tokenizer->special[EOS])
		found.items[found.count++] = tokenizer->special[EOS];
	*ids = found.items;
	*count = found.count;
	return 0;
}
