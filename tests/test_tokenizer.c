/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/file.h"
#include "base/json.h"
#include "harness.h"
#include "tokenizer/tokenizer.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIMIT = 300 };

static struct smalti_tokenizer *open_tesserae(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tokenizer *tokenizer = smalti_tokenizer_open(test_model("tesserae/tokenizer"), &error);
	SUCCEEDS(tokenizer ? 0 : -1, &error, "tesserae");
	CU_ASSERT_PTR_NOT_NULL_FATAL(tokenizer);
	return tokenizer;
}

/* Encodes and compares; the first difference is what the message names. */
static void expect(const struct smalti_tokenizer *tokenizer, const char *text, size_t length,
		   int64_t max_length, const int32_t *ids, int64_t count, const char *what)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	int32_t *found = NULL;
	int64_t n = 0;
	SUCCEEDS(smalti_tokenizer_encode(tokenizer, text, length, max_length, &found, &n, &error), &error,
		 what);
	CHECK(n == count, what);
	CHECK(n == count && memcmp(found, ids, (size_t)n * sizeof(*ids)) == 0, what);
	free(found);
}

static void golden_ids(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tokenizer *tokenizer = open_tesserae();
	cJSON *cases = smalti_json_read(test_data("golden/tokenizer.json"), 1 << 20, &error);
	SUCCEEDS(cases ? 0 : -1, &error, "golden");
	CU_ASSERT_EQUAL(cJSON_GetArraySize(cases), 9);
	const cJSON *item;
	cJSON_ArrayForEach (item, cases) {
		const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, "text"));
		const cJSON *array = cJSON_GetObjectItem(item, "ids"), *id;
		int32_t ids[LIMIT];
		int64_t count = 0;
		cJSON_ArrayForEach (id, array)
			ids[count++] = id->valueint;
		expect(tokenizer, text, strlen(text), LIMIT, ids, count, text);
	}
	cJSON_Delete(cases);
	smalti_tokenizer_close(tokenizer);
}

/* In tesserae: 3 is the piece `_a`, 138 `_`, 128 `b`. */
static void special_tokens_split_the_text(void)
{
	struct smalti_tokenizer *tokenizer = open_tesserae();
	int64_t vocabulary = smalti_tokenizer_vocabulary(tokenizer);
	int32_t last = (int32_t)vocabulary - 1;
	struct {
		const char *text;
		int32_t ids[8];
		int64_t count;
	} cases[] = {
	    {"a</s>b", {3, 1, 138, 128, 1}, 5},
	    {"a </s> ", {3, 1}, 2}, /* no second end-of-sentence */
	    {"</s></s>", {1, 1}, 2},
	    {"<pad><unk>a", {0, 2, 3, 1}, 4},
	    {"a<extra_id_0>a", {3, last, 3, 1}, 4},
	    {"a <extra_id_99> a", {3, last - 99, 3, 1}, 4},
	    {"<extra_id_10><extra_id_1>", {last - 10, last - 1, 1}, 3},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		expect(tokenizer, cases[i].text, strlen(cases[i].text), LIMIT, cases[i].ids, cases[i].count,
		       cases[i].text);
	static const char *const ordinary[] = {"<extra_id_>",   "<extra_id_100>",        "<extra_id_01>",
					       "<extra_id_-1>", "<extra_id_1",           "</s",
					       "<PAD>",         "<extra_id_99999999999>"};
	for (size_t i = 0; i < COUNT(ordinary); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		int32_t *ids = NULL;
		int64_t count = 0;
		SUCCEEDS(smalti_tokenizer_encode(tokenizer, ordinary[i], strlen(ordinary[i]), LIMIT, &ids,
						 &count, &error),
			 &error, ordinary[i]);
		CHECK(count > 2 && ids[0] == 138, ordinary[i]);
		free(ids);
	}
	smalti_tokenizer_close(tokenizer);
}

static void truncation_keeps_the_end_of_sentence(void)
{
	struct smalti_tokenizer *tokenizer = open_tesserae();
	expect(tokenizer, "a a a a", 7, 4, (int32_t[]){3, 3, 3, 1}, 4, "cut");
	expect(tokenizer, "a a a", 5, 4, (int32_t[]){3, 3, 3, 1}, 4, "just fits");
	expect(tokenizer, "a a a", 5, 1, (int32_t[]){1}, 1, "nothing but the end");
	expect(tokenizer, "a</s>a", 6, 3, (int32_t[]){3, 1}, 2, "cut at an end-of-sentence");
	expect(tokenizer, NULL, 0, LIMIT, (int32_t[]){1}, 1, "empty");
	struct smalti_error error = SMALTI_NO_ERROR;
	int32_t *ids;
	int64_t count;
	FAILS(smalti_tokenizer_encode(tokenizer, "a", 1, 0, &ids, &count, &error), &error, SMALTI_EINVAL,
	      "no room", "0 tokens");
	smalti_tokenizer_close(tokenizer);
}

/* Bytes that are no text: U+FFFD is unknown to tesserae (2), and neighbouring unknowns are one. */
static void any_bytes_are_text(void)
{
	struct smalti_tokenizer *tokenizer = open_tesserae();
	expect(tokenizer, "a\xff\xfe", 3, LIMIT, (int32_t[]){3, 2, 1}, 3, "invalid UTF-8");
	expect(tokenizer, "a\xe2\x82", 3, LIMIT, (int32_t[]){3, 2, 1}, 3, "cut UTF-8");
	expect(tokenizer, "a\0b", 3, 2, (int32_t[]){3, 1}, 2, "NUL, cut");
	struct smalti_error error = SMALTI_NO_ERROR;
	int32_t *with = NULL, *without = NULL;
	int64_t with_count = 0, without_count = 0;
	SUCCEEDS(smalti_tokenizer_encode(tokenizer, "a\0b", 3, LIMIT, &with, &with_count, &error), &error,
		 "NUL");
	SUCCEEDS(smalti_tokenizer_encode(tokenizer, "a", 1, LIMIT, &without, &without_count, &error), &error,
		 "no NUL");
	CU_ASSERT_TRUE(with_count > without_count);
	free(with);
	free(without);
	smalti_tokenizer_close(tokenizer);
}

static void long_texts(void)
{
	struct smalti_tokenizer *tokenizer = open_tesserae();
	static const char *const units[] = {"a red star ", "a", "</s>x", "<", " ", "\xff", "\xe9\x9b\xaa"};
	char *text = malloc(SMALTI_TEXT_BYTES + 1);
	for (size_t i = 0; i < COUNT(units); i++) {
		for (size_t at = 0; at <= SMALTI_TEXT_BYTES; at++)
			text[at] = units[i][at % strlen(units[i])];
		struct smalti_error error = SMALTI_NO_ERROR;
		int32_t *ids = NULL;
		int64_t count = 0;
		SUCCEEDS(
		    smalti_tokenizer_encode(tokenizer, text, SMALTI_TEXT_BYTES, LIMIT, &ids, &count, &error),
		    &error, units[i]);
		CHECK(count >= 1 && count <= LIMIT && ids[count - 1] == 1, units[i]);
		free(ids);
		FAILS(smalti_tokenizer_encode(tokenizer, text, SMALTI_TEXT_BYTES + 1, LIMIT, &ids, &count,
					      &error),
		      &error, SMALTI_EINVAL, "too long", "1048577 bytes", "shorten");
	}
	free(text);
	smalti_tokenizer_close(tokenizer);
}

static void *encode_often(void *argument)
{
	static const int32_t ids[] = {40, 16, 24, 4, 3, 14, 5, 1};
	const struct smalti_tokenizer *tokenizer = argument;
	static const char text[] = "large yellow heart on a blue background";
	for (int i = 0; i < 300; i++) {
		int32_t *found = NULL;
		int64_t count = 0;
		int status =
		    smalti_tokenizer_encode(tokenizer, text, sizeof(text) - 1, LIMIT, &found, &count, NULL);
		bool same = status == 0 && count == 8 && memcmp(found, ids, sizeof(ids)) == 0;
		free(found);
		if (!same)
			return argument;
	}
	return NULL;
}

static void threads_share_a_tokenizer(void)
{
	struct smalti_tokenizer *tokenizer = open_tesserae();
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, encode_often, tokenizer), 0);
	for (int i = 0; i < 4; i++) {
		void *failed;
		pthread_join(threads[i], &failed);
		CU_ASSERT_PTR_NULL(failed);
	}
	smalti_tokenizer_close(tokenizer);
}

/* Writes a model into a scratch directory and opens it; a tokenizer that opens has to encode. */
static bool survives(const char *directory, const char *model, size_t length, struct smalti_error *error)
{
	char path[4096];
	snprintf(path, sizeof(path), "%s/spiece.model", directory);
	FILE *file = fopen(path, "wb");
	fwrite(model, 1, length, file);
	fclose(file);
	struct smalti_tokenizer *tokenizer = smalti_tokenizer_open(directory, error);
	if (!tokenizer)
		return error->code != SMALTI_OK && strstr(error->message, "spiece.model");
	static const char text[] = "A \xef\xac\x81ne, r\xc3\xa9"
				   "d st\xc3\xa4r\t\xe2\x91\xa0 </s>\xff\x00 z";
	int32_t *ids = NULL;
	int64_t count = 0;
	int status = smalti_tokenizer_encode(tokenizer, text, sizeof(text) - 1, LIMIT, &ids, &count, error);
	smalti_tokenizer_close(tokenizer);
	bool fine = status ? error->code != SMALTI_OK : count >= 1 && count <= LIMIT;
	if (status == 0)
		free(ids);
	return fine;
}

static void damaged_models_do_no_harm(void)
{
	const char *directory = test_scratch();
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t length = 0;
	char *model =
	    smalti_file_read(test_model("tesserae/tokenizer/spiece.model"), 1 << 24, &length, &error);
	SUCCEEDS(model ? 0 : -1, &error, "model");
	uint64_t state = 7;
	for (int i = 0; i < 400; i++) {
		/* A third of the flips among the pieces, a third in the array, a third anywhere. */
		static const double spans[] = {0.03, 0.3, 1};
		double position = (test_random(&state) + 1) / 2 * spans[i % 3];
		size_t at = (size_t)(position * (double)(length - 1));
		char kept = model[at];
		model[at] ^= (char)(1 << (i % 8));
		struct smalti_error flipped = SMALTI_NO_ERROR;
		CHECK(survives(directory, model, length, &flipped), flipped.message);
		model[at] = kept;
	}
	for (int i = 0; i < 60; i++) {
		struct smalti_error cut = SMALTI_NO_ERROR;
		CHECK(survives(directory, model, i < 20 ? (size_t)i : length * (size_t)i / 60, &cut),
		      cut.message);
	}
	free(model);
}

static void broken_directories_are_named(void)
{
	const char *directory = test_scratch();
	char path[4096];
	struct smalti_error missing = SMALTI_NO_ERROR;
	FAILS(smalti_tokenizer_open(directory, &missing) ? 0 : -1, &missing, SMALTI_EIO, "missing", directory,
	      "spiece.model", "tokenizer.json");
	snprintf(path, sizeof(path), "%s/spiece.model", directory);
	CU_ASSERT_EQUAL(mkfifo(path, 0600), 0);
	struct smalti_error pipe_error = SMALTI_NO_ERROR;
	FAILS(smalti_tokenizer_open(directory, &pipe_error) ? 0 : -1, &pipe_error, SMALTI_EFORMAT, "pipe",
	      "spiece.model");
	unlink(path);
	struct smalti_error text = SMALTI_NO_ERROR;
	CU_ASSERT_TRUE(survives(directory, "version https://git-lfs", 23, &text));
	CU_ASSERT_EQUAL(text.code, SMALTI_EFORMAT);
	CU_ASSERT_PTR_NOT_NULL(strstr(text.message, "git lfs pull"));
}

static const struct test tests[] = {
    {"golden ids", golden_ids},
    {"special tokens split the text", special_tokens_split_the_text},
    {"truncation keeps the end of sentence", truncation_keeps_the_end_of_sentence},
    {"any bytes are text", any_bytes_are_text},
    {"long texts", long_texts},
    {"threads share a tokenizer", threads_share_a_tokenizer},
    {"damaged models do no harm", damaged_models_do_no_harm},
    {"broken directories are named", broken_directories_are_named},
};

TEST_MAIN("tokenizer", tests)
