/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "base/json.h"
#include "harness.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Exactly `length` bytes on the heap, so that a sanitizer sees a read past the end. */
static cJSON *parse(const char *text, size_t length, struct smalti_error *error)
{
	char *copy = malloc(length ? length : 1);
	memcpy(copy, text, length);
	cJSON *value = smalti_json_parse(copy, length, error);
	free(copy);
	return value;
}

static void what_python_writes_is_read(void)
{
	const char *text =
	    "{\"a\": -Infinity, \"b\": [NaN,NaN,NaN], \"c\": \"NaN -Infinity \\\"\", \"d\": Infinity}";
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *value = parse(text, strlen(text), &error);
	double a = 0, d = 0;
	const char *c = "";
	SUCCEEDS(value ? 0 : -1, &error, "parse");
	SUCCEEDS(smalti_json_double(value, "a", SMALTI_JSON_REQUIRED, -INFINITY, INFINITY, &a, &error),
		 &error, "a");
	SUCCEEDS(smalti_json_double(value, "d", SMALTI_JSON_REQUIRED, -INFINITY, INFINITY, &d, &error),
		 &error, "d");
	SUCCEEDS(smalti_json_string(value, "c", SMALTI_JSON_REQUIRED, &c, &error), &error, "c");
	CU_ASSERT_TRUE(a == -INFINITY && d == INFINITY);
	CU_ASSERT_STRING_EQUAL(c, "NaN -Infinity \"");
	const cJSON *b = cJSON_GetObjectItem(value, "b");
	CU_ASSERT_EQUAL(cJSON_GetArraySize(b), 3);
	CU_ASSERT_TRUE(cJSON_IsNull(cJSON_GetArrayItem(b, 2)));
	cJSON_Delete(value);
}

/* In document order, whatever is around them. */
static void what_a_double_does_not_hold_is_kept(void)
{
	const char *text =
	    "{\"k\\\"1234567890123456789\": [9007199254740991, 9007199254740992, {}, -1e20, NaN, null,"
	    " \"\\\\u0000\", \"a\\u0000b\"], \"\\u0000\": 12345678901234567890123, \"x\": \"NaN\"}";
	static const char *const numbers[] = {NULL, "9007199254740992", NULL, "-1e20", NULL, NULL, NULL,
					      NULL};
	struct smalti_error error = SMALTI_NO_ERROR, strict = SMALTI_NO_ERROR;
	CU_ASSERT_PTR_NULL(parse(text, strlen(text), &strict));
	cJSON *value = smalti_json_parse_data(text, strlen(text), &error);
	SUCCEEDS(value ? 0 : -1, &error, "parse");
	const cJSON *list = cJSON_GetObjectItem(value, "k\"1234567890123456789");
	CU_ASSERT_EQUAL_FATAL(cJSON_GetArraySize(list), 8);
	for (int i = 0; i < 8; i++) {
		const cJSON *item = cJSON_GetArrayItem(list, i);
		const char *number = smalti_json_long_number(item);
		CHECK(numbers[i] ? number && strcmp(number, numbers[i]) == 0 : !number,
		      number ? number : "none");
		CU_ASSERT_EQUAL(smalti_json_is_nan(item), i == 4);
		CU_ASSERT_EQUAL(smalti_json_holds_nul(item), i == 7);
	}
	CU_ASSERT_STRING_EQUAL(cJSON_GetArrayItem(list, 7)->valuestring, "a\xef\xbf\xbd"
									 "b");
	const cJSON *odd = cJSON_GetObjectItem(value, "\xef\xbf\xbd"), *x = cJSON_GetObjectItem(value, "x");
	CU_ASSERT_STRING_EQUAL(smalti_json_long_number(odd), "12345678901234567890123");
	CU_ASSERT_FALSE(smalti_json_is_nan(x) || smalti_json_holds_nul(x));
	cJSON_Delete(value);
}

static void nan_is_no_number_and_not_absent(void)
{
	static const char text[] = "{\"a\": NaN, \"b\": null}";
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t number = 5;
	cJSON *value = parse(text, strlen(text), &error);
	SUCCEEDS(smalti_json_int(value, "b", SMALTI_JSON_NULLABLE, 0, 9, &number, &error), &error, "null");
	FAILS(smalti_json_int(value, "a", SMALTI_JSON_NULLABLE, 0, 9, &number, &error), &error,
	      SMALTI_EFORMAT, text, "found NaN");
	CU_ASSERT_EQUAL(number, 5);
	cJSON_Delete(value);
}

#define TEXT(string) (string), sizeof(string) - 1

static void bad_documents_are_refused(void)
{
	static const struct {
		const char *what, *text;
		size_t length;
		const char *word;
	} cases[] = {
	    {"empty", TEXT(""), "JSON"},
	    {"blank", TEXT(" \n"), "JSON"},
	    {"cut in an object", TEXT("{\"a\": 1"), "JSON"},
	    {"cut in a string", TEXT("{\"a"), "string"},
	    {"cut in an escape", TEXT("\"\\"), "string"},
	    {"cut in a unicode escape", TEXT("\"\\u00\""), "JSON"},
	    {"trailing word", TEXT("{} {}"), "JSON"},
	    {"trailing bracket", TEXT("[1]]"), "JSON"},
	    {"trailing NUL", TEXT("{}\0"), "no place"},
	    {"NUL after the value", TEXT("{}\0{"), "no place"},
	    {"a key twice", TEXT("{\"a\": 1, \"b\": 2, \"a\": 3}"), "\"a\" is there twice"},
	    {"a key twice below", TEXT("[0, {\"x\": {\"k\": 1, \"k\": 1}}]"), "\"k\" is there twice"},
	    {"a key twice by an escape", TEXT("{\"a\": 1, \"\\u0061\": 2}"), "twice"},
	    {"NUL escape", TEXT("{\"a\\u0000b\": 1}"), "NUL"},
	    {"control character", TEXT("\"a\nb\""), "control"},
	    {"lone continuation", TEXT("\"\x80\""), "UTF-8"},
	    {"overlong slash", TEXT("\"\xc0\xaf\""), "UTF-8"},
	    {"surrogate", TEXT("\"\xed\xa0\x80\""), "UTF-8"},
	    {"above Unicode", TEXT("\"\xf4\x90\x80\x80\""), "UTF-8"},
	    {"cut character", TEXT("\"\xe2\x82"), "UTF-8"},
	    {"lone surrogate escape", TEXT("\"\\udc00\""), "JSON"},
	    {"single quotes", TEXT("{'a': 1}"), "JSON"},
	    {"trailing comma", TEXT("[1,]"), "JSON"},
	    {"non-ASCII outside a string", TEXT("{\xc2\xa0}"), "no place"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		cJSON *value = parse(cases[i].text, cases[i].length, &error);
		FAILS(value ? 0 : -1, &error, SMALTI_EFORMAT, cases[i].what, cases[i].word);
		cJSON_Delete(value);
	}
}

static void every_cut_is_refused(void)
{
	const char *text = "{\"k\u00e9y\": [1, -2.5e3, true, null, \"\\u20ac\\\"\", {\"x\": {}}]}";
	for (size_t length = 0; length < strlen(text); length++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		CU_ASSERT_PTR_NULL(parse(text, length, &error));
		CU_ASSERT_EQUAL(error.code, SMALTI_EFORMAT);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *value = parse(text, strlen(text), &error);
	CU_ASSERT_PTR_NOT_NULL(value);
	cJSON_Delete(value);
}

static void depth_is_limited(void)
{
	for (int depth = SMALTI_JSON_DEPTH; depth <= SMALTI_JSON_DEPTH + 1; depth++) {
		char text[2 * SMALTI_JSON_DEPTH + 2];
		memset(text, '[', (size_t)depth);
		memset(text + depth, ']', (size_t)depth);
		struct smalti_error error = SMALTI_NO_ERROR;
		cJSON *value = parse(text, 2 * (size_t)depth, &error);
		CU_ASSERT_EQUAL(value != NULL, depth == SMALTI_JSON_DEPTH);
		CU_ASSERT_EQUAL(strstr(error.message, "deep") != NULL, depth > SMALTI_JSON_DEPTH);
		cJSON_Delete(value);
	}
}

static const char values[] =
    "{\"int\": 7, \"big\": 9007199254740993, \"half\": 2.5, \"text\": \"relu\", \"yes\": true,"
    " \"null\": null, \"ints\": [1, 2, 3], \"words\": [\"a\", \"b\"], \"none\": [],"
    " \"mixed\": [1, \"a\"], \"inf\": Infinity, \"object\": {}}";

static void integers_are_checked(void)
{
	static const struct {
		const char *key;
		enum smalti_json_need need;
		int64_t min, max;
		const char *words[2]; /* of the failure; none: 5 (the default) or the value */
		int64_t value;
	} cases[] = {
	    {"int", SMALTI_JSON_REQUIRED, 7, 7, {NULL}, 7},
	    {"absent", SMALTI_JSON_OPTIONAL, 0, 9, {NULL}, 5},
	    {"null", SMALTI_JSON_NULLABLE, 0, 9, {NULL}, 5},
	    {"absent", SMALTI_JSON_NULLABLE, 0, 9, {NULL}, 5},
	    {"absent", SMALTI_JSON_REQUIRED, 0, 9, {"absent", "missing"}, 5},
	    {"null", SMALTI_JSON_OPTIONAL, 0, 9, {"null", "from 0 to 9"}, 5},
	    {"null", SMALTI_JSON_REQUIRED, 0, 9, {"null", "from 0 to 9"}, 5},
	    {"int", SMALTI_JSON_REQUIRED, 8, 9, {"from 8 to 9", "found 7"}, 5},
	    {"int", SMALTI_JSON_REQUIRED, 0, 6, {"from 0 to 6", "found 7"}, 5},
	    {"half", SMALTI_JSON_REQUIRED, 0, 9, {"integer", "found 2.5"}, 5},
	    {"big", SMALTI_JSON_REQUIRED, 0, INT64_MAX, {"integer", "9007199254740993"}, 5},
	    {"inf", SMALTI_JSON_REQUIRED, 0, INT64_MAX, {"integer", "inf"}, 5},
	    {"text", SMALTI_JSON_REQUIRED, 0, 9, {"text", "found \"relu\""}, 5},
	    {"object", SMALTI_JSON_OPTIONAL, 0, 9, {"object", "found an object"}, 5},
	    {"ints", SMALTI_JSON_OPTIONAL, 0, 9, {"ints", "found an array"}, 5},
	    {"yes", SMALTI_JSON_OPTIONAL, 0, 9, {"yes", "found true"}, 5},
	};
	cJSON *object = parse(TEXT(values), NULL);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t value = 5;
		int status = smalti_json_int(object, cases[i].key, cases[i].need, cases[i].min, cases[i].max,
					     &value, &error);
		if (cases[i].words[0])
			FAILS(status, &error, SMALTI_EFORMAT, cases[i].key, cases[i].words[0],
			      cases[i].words[1]);
		else
			SUCCEEDS(status, &error, cases[i].key);
		CHECK(value == cases[i].value, cases[i].key);
	}
	cJSON_Delete(object);
}

static void other_types_are_checked(void)
{
	static const char *const colours[] = {"red", "relu", NULL}, *const shapes[] = {"disc", "ring", NULL};
	cJSON *object = parse(TEXT(values), NULL);
	struct smalti_error e = SMALTI_NO_ERROR;
	double d = 0;
	bool b = false;
	const char *s = NULL, *list[2];
	int64_t ints[3];
	int n = 0;
	SUCCEEDS(smalti_json_double(object, "int", SMALTI_JSON_REQUIRED, 0, 9, &d, &e), &e, "double");
	SUCCEEDS(smalti_json_bool(object, "yes", SMALTI_JSON_REQUIRED, &b, &e), &e, "bool");
	SUCCEEDS(smalti_json_string(object, "text", SMALTI_JSON_REQUIRED, &s, &e), &e, "string");
	CU_ASSERT_TRUE(d == 7 && b && !strcmp(s, "relu"));
	SUCCEEDS(smalti_json_ints(object, "ints", SMALTI_JSON_REQUIRED, 1, 3, 3, ints, &n, &e), &e, "ints");
	CU_ASSERT_TRUE(n == 3 && ints[0] == 1 && ints[2] == 3);
	SUCCEEDS(smalti_json_strings(object, "words", SMALTI_JSON_REQUIRED, 2, list, &n, &e), &e, "strings");
	CU_ASSERT_TRUE(n == 2 && !strcmp(list[1], "b"));
	SUCCEEDS(smalti_json_choice(object, "text", SMALTI_JSON_REQUIRED, colours, &n, &e), &e, "choice");
	CU_ASSERT_EQUAL(n, 1);

#define REFUSED(call, code, word)                                                                            \
	do {                                                                                                 \
		e = (struct smalti_error)SMALTI_NO_ERROR;                                                    \
		FAILS(call, &e, code, #call, word);                                                          \
	} while (0)
	REFUSED(smalti_json_double(object, "inf", SMALTI_JSON_REQUIRED, 0, 9, &d, &e), SMALTI_EFORMAT, "inf");
	REFUSED(smalti_json_double(object, "text", SMALTI_JSON_REQUIRED, 0, 9, &d, &e), SMALTI_EFORMAT,
		"relu");
	REFUSED(smalti_json_bool(object, "int", SMALTI_JSON_OPTIONAL, &b, &e), SMALTI_EFORMAT, "true or");
	REFUSED(smalti_json_string(object, "int", SMALTI_JSON_OPTIONAL, &s, &e), SMALTI_EFORMAT, "found 7");
	REFUSED(smalti_json_ints(object, "ints", SMALTI_JSON_REQUIRED, 1, 3, 2, ints, &n, &e), SMALTI_EFORMAT,
		"found 3");
	REFUSED(smalti_json_ints(object, "none", SMALTI_JSON_REQUIRED, 1, 3, 2, ints, &n, &e), SMALTI_EFORMAT,
		"found 0");
	REFUSED(smalti_json_ints(object, "mixed", SMALTI_JSON_REQUIRED, 1, 3, 2, ints, &n, &e),
		SMALTI_EFORMAT, "found \"a\"");
	REFUSED(smalti_json_strings(object, "mixed", SMALTI_JSON_REQUIRED, 2, list, &n, &e), SMALTI_EFORMAT,
		"found 1");
	REFUSED(smalti_json_strings(object, "text", SMALTI_JSON_REQUIRED, 2, list, &n, &e), SMALTI_EFORMAT,
		"array");
	REFUSED(smalti_json_choice(object, "text", SMALTI_JSON_REQUIRED, shapes, &n, &e), SMALTI_EUNSUPPORTED,
		"\"disc\", \"ring\"");
	cJSON_Delete(object);
}

static void files_are_named(void)
{
	const char *path = test_file("a.json");
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_writer *writer = smalti_writer_open(path, &error);
	fputs("{\"a\": 1, }", smalti_writer_stream(writer));
	SUCCEEDS(smalti_writer_commit(writer, &error), &error, "write");
	FAILS(smalti_json_read(path, 100, &error) ? 0 : -1, &error, SMALTI_EFORMAT, "syntax", "a.json",
	      "JSON");
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(smalti_json_read(path, 9, &error) ? 0 : -1, &error, SMALTI_EFORMAT, "limit", "a.json",
	      "at most 9");
}

static void added_text_is_utf8(void)
{
	static const struct {
		const char *text, *written;
	} cases[] = {{"", ""},
		     {"a\xc3\xa9\xf0\x9f\x8c\x8a", "a\xc3\xa9\xf0\x9f\x8c\x8a"},
		     {"a\xff", "a?"},
		     {"\xc3", "?"},
		     {"\xed\xa0\x80z", "???z"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		cJSON *object = cJSON_CreateObject();
		CU_ASSERT_TRUE(smalti_json_add_text(object, "k", cases[i].text));
		CHECK(!strcmp(cJSON_GetObjectItem(object, "k")->valuestring, cases[i].written),
		      cases[i].written);
		cJSON_Delete(object);
	}
}

static const struct test tests[] = {
    {"what Python writes is read", what_python_writes_is_read},
    {"what a double does not hold is kept", what_a_double_does_not_hold_is_kept},
    {"NaN is no number and not absent", nan_is_no_number_and_not_absent},
    {"bad documents are refused", bad_documents_are_refused},
    {"every cut is refused", every_cut_is_refused},
    {"depth is limited", depth_is_limited},
    {"integers are checked", integers_are_checked},
    {"other types are checked", other_types_are_checked},
    {"files are named", files_are_named},
    {"added text is UTF-8", added_text_is_utf8},
};

TEST_MAIN("json", tests)
