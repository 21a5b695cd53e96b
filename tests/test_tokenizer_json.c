/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base.h"
#include "base/file.h"
#include "base/json.h"
#include "harness.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* tests/data/tokenizer/tokenizer.json is the embedded model's tokenizer as transformers 5.23 saves it. */

enum { LIMIT = 300 };

static struct smalti_tokenizer *open_directory(const char *directory)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_tokenizer *tokenizer = smalti_tokenizer_open(directory, &error);
	SUCCEEDS(tokenizer ? 0 : -1, &error, directory);
	CU_ASSERT_PTR_NOT_NULL_FATAL(tokenizer);
	return tokenizer;
}

/* Ids of a text; -1 when it fails. */
static int64_t encode(const struct smalti_tokenizer *tokenizer, const char *text, int32_t ids[LIMIT])
{
	int32_t *found = NULL;
	int64_t count = 0;
	if (smalti_tokenizer_encode(tokenizer, text, strlen(text), LIMIT, &found, &count, NULL))
		return -1;
	memcpy(ids, found, (size_t)count * sizeof(*ids));
	free(found);
	return count;
}

static void expect_same(const struct smalti_tokenizer *a, const struct smalti_tokenizer *b, const char *text)
{
	int32_t ids[2][LIMIT];
	const int64_t counts[2] = {encode(a, text, ids[0]), encode(b, text, ids[1])};
	CHECK(counts[0] > 0 && counts[0] == counts[1] &&
		  memcmp(ids[0], ids[1], (size_t)counts[0] * sizeof(ids[0][0])) == 0,
	      text);
}

/* Every text of two files of other tests. */
static void expect_all_same(const struct smalti_tokenizer *a, const struct smalti_tokenizer *b)
{
	static const char *const files[] = {"golden/tokenizer.json", "captions.json"};
	for (int i = 0; i < COUNT(files); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		cJSON *cases = smalti_json_read(test_data(files[i]), 1 << 20, &error);
		SUCCEEDS(cases ? 0 : -1, &error, files[i]);
		const cJSON *item;
		cJSON_ArrayForEach (item, cases)
			expect_same(a, b, cJSON_GetStringValue(cJSON_GetObjectItem(item, "text")));
		cJSON_Delete(cases);
	}
}

static void like_the_sentencepiece_model(void)
{
	struct smalti_tokenizer *json = open_directory(test_data("tokenizer"));
	struct smalti_tokenizer *pieces = open_directory(test_model("tesserae/tokenizer"));
	CU_ASSERT_EQUAL(smalti_tokenizer_vocabulary(json), smalti_tokenizer_vocabulary(pieces));
	expect_all_same(json, pieces);
	static const char *const texts[] = {
	    "a<extra_id_0>b <extra_id_99>",
	    "<pad> a <unk>\tb",
	    "a</s>b",
	    "<extra_id_100> <extra_id_01>",
	    "  \xe2\x96\x81 a \xef\xac\x81ne \xf0\x9f\x99\x82\xf0\x9f\x99\x82 r\xc3\xa9 d  ",
	};
	for (int i = 0; i < COUNT(texts); i++)
		expect_same(json, pieces, texts[i]);
	smalti_tokenizer_close(pieces);
	smalti_tokenizer_close(json);
}

/* The file says what comes behind a text, whatever the text ends with: as transformers 5 does. */
static void the_end_mark_is_always_added(void)
{
	struct smalti_tokenizer *tokenizer = open_directory(test_data("tokenizer"));
	int32_t ids[LIMIT] = {0};
	CU_ASSERT_EQUAL(encode(tokenizer, "a</s>", ids), 3);
	CU_ASSERT_EQUAL(ids[1], 1);
	CU_ASSERT_EQUAL(ids[2], 1);
	CU_ASSERT_EQUAL(encode(tokenizer, "", ids), 1);
	CU_ASSERT_EQUAL(ids[0], 1);
	smalti_tokenizer_close(tokenizer);
}

static char *real_text(void)
{
	size_t length;
	struct smalti_error error = SMALTI_NO_ERROR;
	char *text = smalti_file_read(test_data("tokenizer/tokenizer.json"), 1 << 20, &length, &error);
	SUCCEEDS(text ? 0 : -1, &error, "real");
	CU_ASSERT_PTR_NOT_NULL_FATAL(text);
	return text;
}

struct change {
	const char *old, *new;
};

/* The real file in a fresh directory, but for the first `old` of each change, which becomes `new`. */
static const char *changed(const struct change *changes, int count)
{
	const char *directory = test_scratch();
	char path[4096], *text = real_text();
	for (int i = 0; i < count && changes[i].old; i++) {
		char *at = strstr(text, changes[i].old);
		CHECK(at != NULL, changes[i].old);
		char *next = smalti_format(NULL, "%.*s%s%s", at ? (int)(at - text) : 0, text, changes[i].new,
					   at ? at + strlen(changes[i].old) : "");
		free(text);
		text = next;
	}
	snprintf(path, sizeof(path), "%s/tokenizer.json", directory);
	FILE *file = fopen(path, "wb");
	fputs(text, file);
	fclose(file);
	free(text);
	return directory;
}

#define NORMALIZER    "\"normalizer\": {\n    \"type\": \"Precompiled\","
#define PRE_TOKENIZER "\"pre_tokenizer\": {\n    \"type\": \"Sequence\","
#define METASPACE     "\"prepend_scheme\": \"always\",\n        \"split\": true"

/* The forms that other versions write. */
static void other_forms(void)
{
	static const struct {
		const char *what;
		struct change changes[3];
	} forms[] = {
	    {"before tokenizers 0.15", {{METASPACE, "\"add_prefix_space\": true"}}},
	    {"defaults", {{METASPACE, "\"str_rep\": \"\\u2581\""}}},
	    {"converted by transformers 4",
	     {{"\"normalizer\": {", "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{"},
	      {"},\n  \"pre_tokenizer\"",
	       "}, {\"type\": \"Strip\", \"strip_left\": false, \"strip_right\": true}, {\"type\": "
	       "\"Replace\", "
	       "\"pattern\": {\"Regex\": \" {2,}\"}, \"content\": \"\\u2581\"}]},\n\"pre_tokenizer\""},
	      {"{\n        \"type\": \"WhitespaceSplit\"\n      },", ""}}},
	    {"scores of another width", {{"-1.6673877239227295", "-1.6673877"}}},
	    {"truncation", {{"\"truncation\": null", "\"truncation\": {\"max_length\": 120}"}}},
	};
	struct smalti_tokenizer *pieces = open_directory(test_model("tesserae/tokenizer"));
	for (int i = 0; i < COUNT(forms); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_tokenizer *tokenizer =
		    smalti_tokenizer_open(changed(forms[i].changes, COUNT(forms[i].changes)), &error);
		SUCCEEDS(tokenizer ? 0 : -1, &error, forms[i].what);
		if (tokenizer)
			expect_all_same(tokenizer, pieces);
		smalti_tokenizer_close(tokenizer);
	}
	smalti_tokenizer_close(pieces);
}

static void what_is_not_supported_is_named(void)
{
	static const struct {
		struct change change;
		enum smalti_code code;
		const char *words[2];
	} rows[] = {
	    {{"\"Unigram\"", "\"BPE\""}, SMALTI_EUNSUPPORTED, {"\"model\"", "BPE"}},
	    {{"\"Unigram\"", "7"}, SMALTI_EFORMAT, {"\"model\"", "\"type\""}},
	    {{"\"unk_id\": 2", "\"unk_id\": null"}, SMALTI_EFORMAT, {"\"model\"", "unk_id"}},
	    {{"\"unk_id\": 2", "\"unk_id\": 240"}, SMALTI_EFORMAT, {"\"model\"", "unk_id"}},
	    {{"\"byte_fallback\": false", "\"byte_fallback\": true"},
	     SMALTI_EFORMAT,
	     {"byte_fallback", "256"}},
	    {{"-1.6673877239227295", "1e39"}, SMALTI_EFORMAT, {"item 3", "vocab"}},
	    {{"-1.6673877239227295", "NaN"}, SMALTI_EFORMAT, {"item 3", "vocab"}},
	    {{"-1.6673877239227295", "-1, 2"}, SMALTI_EFORMAT, {"item 3", "vocab"}},
	    {{"\"vocab\": [", "\"vocab\": [], \"v\": ["}, SMALTI_EFORMAT, {"vocab", "found 0"}},
	    {{NORMALIZER, "\"normalizer\": {\"type\": \"NFKC\","},
	     SMALTI_EUNSUPPORTED,
	     {"\"normalizer\"", "NFKC"}},
	    {{NORMALIZER, "\"normalizer\": null, \"n\": {"}, SMALTI_EUNSUPPORTED, {"\"normalizer\"", "null"}},
	    {{NORMALIZER, "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": []},\n\"n\": {"},
	     SMALTI_EUNSUPPORTED,
	     {"\"normalizer\"", "Precompiled"}},
	    {{"\"precompiled_charsmap\": \"A", "\"precompiled_charsmap\": \"!"},
	     SMALTI_EFORMAT,
	     {"precompiled_charsmap", "base64"}},
	    {{"\"precompiled_charsmap\": \"A", "\"precompiled_charsmap\": \"B"},
	     SMALTI_EFORMAT,
	     {"precompiled_charsmap"}},
	    {{PRE_TOKENIZER, "\"pre_tokenizer\": {\"type\": \"ByteLevel\","},
	     SMALTI_EUNSUPPORTED,
	     {"\"pre_tokenizer\"", "ByteLevel"}},
	    {{"\"WhitespaceSplit\"", "\"Digits\""}, SMALTI_EUNSUPPORTED, {"\"pre_tokenizer\"", "Digits"}},
	    {{"\"type\": \"WhitespaceSplit\"",
	      METASPACE ", \"replacement\": \"\\u2581\", \"type\": \"Metaspace\""},
	     SMALTI_EUNSUPPORTED,
	     {"\"pre_tokenizer\"", "WhitespaceSplit"}},
	    {{"\"prepend_scheme\": \"always\"", "\"prepend_scheme\": \"first\""},
	     SMALTI_EUNSUPPORTED,
	     {"prepend_scheme", "first"}},
	    {{METASPACE, "\"add_prefix_space\": false"}, SMALTI_EUNSUPPORTED, {"add_prefix_space", "false"}},
	    {{"\"split\": true", "\"split\": false"}, SMALTI_EUNSUPPORTED, {"split", "false"}},
	    {{"\"replacement\": \"\xe2\x96\x81\"", "\"replacement\": \"_\""},
	     SMALTI_EUNSUPPORTED,
	     {"replacement"}},
	    {{"\"TemplateProcessing\"", "\"BertProcessing\""},
	     SMALTI_EUNSUPPORTED,
	     {"\"post_processor\"", "BertProcessing"}},
	    {{"\"single\": [", "\"single\": [{\"SpecialToken\": {\"id\": \"</s>\"}},"},
	     SMALTI_EUNSUPPORTED,
	     {"\"post_processor\"", "single"}},
	    {{"\"ids\": [\n          1\n        ]", "\"ids\": [1, 1]"},
	     SMALTI_EFORMAT,
	     {"\"post_processor\"", "ids"}},
	    {{"\"ids\": [\n          1\n        ]", "\"ids\": [240]"},
	     SMALTI_EFORMAT,
	     {"\"post_processor\"", "240"}},
	    {{"\"normalized\": false", "\"normalized\": true"}, SMALTI_EUNSUPPORTED, {"<pad>", "normalized"}},
	    {{"\"single_word\": false", "\"single_word\": true"},
	     SMALTI_EUNSUPPORTED,
	     {"<pad>", "single_word"}},
	    {{"\"id\": 140", "\"id\": 139"}, SMALTI_EFORMAT, {"<extra_id_99>", "139"}},
	    {{"\"id\": 140", "\"id\": -1"}, SMALTI_EFORMAT, {"<extra_id_99>", "\"id\""}},
	    {{"\"content\": \"<extra_id_99>\"", "\"content\": \"<extra_id_98>\""},
	     SMALTI_EFORMAT,
	     {"<extra_id_98>"}},
	    {{"{", "["}, SMALTI_EFORMAT, {"JSON"}},
	    {{"{", "version https://git-lfs.github.com/spec/v1 {"}, SMALTI_EFORMAT, {"git lfs pull"}},
	};
	for (int i = 0; i < COUNT(rows); i++) {
		const char *directory = changed(&rows[i].change, 1);
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_tokenizer *tokenizer = smalti_tokenizer_open(directory, &error);
		FAILS(tokenizer ? 0 : -1, &error, rows[i].code, rows[i].change.new,
		      "tokenizer.json: ", rows[i].words[0], rows[i].words[1]);
		smalti_tokenizer_close(tokenizer);
	}
}

static void spiece_model_comes_first(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *directory = changed(&(struct change){"Unigram", "BPE"}, 1);
	char path[4096];
	snprintf(path, sizeof(path), "%s/spiece.model", directory);
	CU_ASSERT_EQUAL(symlink(test_model("tesserae/tokenizer/spiece.model"), path), 0);
	struct smalti_tokenizer *tokenizer = smalti_tokenizer_open(directory, &error);
	SUCCEEDS(tokenizer ? 0 : -1, &error, "both");
	smalti_tokenizer_close(tokenizer);
	unlink(path);
}

static void base64(void)
{
	static const struct {
		const char *text, *bytes;
	} rows[] = {{"", ""},           {"Zg==", "f"},        {"Zm8=", "fo"},
		    {"Zm9v", "foo"},    {"Zm9vYg==", "foob"}, {"/+9v", "\xff\xef\x6f"},
		    {"Zg", NULL},       {"Zg=", NULL},        {"Z===", NULL},
		    {"Zg==Zg==", NULL}, {"Zm9\n", NULL},      {"====", NULL}};
	for (int i = 0; i < COUNT(rows); i++) {
		size_t length = 0;
		uint8_t *bytes = smalti_base64_decode(rows[i].text, &length, NULL);
		CHECK(!bytes == !rows[i].bytes, rows[i].text);
		if (bytes && rows[i].bytes)
			CHECK(length == strlen(rows[i].bytes) && memcmp(bytes, rows[i].bytes, length) == 0,
			      rows[i].text);
		free(bytes);
	}
}

static const struct test tests[] = {
    {"like the SentencePiece model", like_the_sentencepiece_model},
    {"the end mark is always added", the_end_mark_is_always_added},
    {"other forms", other_forms},
    {"what is not supported is named", what_is_not_supported_is_named},
    {"spiece.model comes first", spiece_model_comes_first},
    {"base64", base64},
};

TEST_MAIN("tokenizer_json", tests)
