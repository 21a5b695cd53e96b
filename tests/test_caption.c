/* SPDX-License-Identifier: Apache-2.0 */
#include "base/json.h"
#include "harness.h"
#include "text/cleaning.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static struct smalti_cleaner *cleaner;

static cJSON *read_cases(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cJSON *cases = smalti_json_read(test_data("captions.json"), 1 << 20, &error);
	SUCCEEDS(cases ? 0 : -1, &error, "captions.json");
	CU_ASSERT_PTR_NOT_NULL_FATAL(cases);
	return cases;
}

static bool prepares(enum smalti_cleaning cleaning, const char *text, size_t length, const char *expected,
		     size_t expected_length)
{
	size_t found = 0;
	char *prepared = smalti_caption_prepare(cleaner, cleaning, text, length, &found, NULL);
	bool same = prepared && found == expected_length && memcmp(prepared, expected, found + 1) == 0;
	free(prepared);
	return same;
}

static bool prepares_string(enum smalti_cleaning cleaning, const char *text, const char *expected)
{
	return prepares(cleaning, text, strlen(text), expected, strlen(expected));
}

/* captions.json was made with Python 3.11, beautifulsoup4 4.15, ftfy 6.3. */
static void captions_are_as_the_reference_prepares_them(void)
{
	cJSON *cases = read_cases();
	CU_ASSERT_TRUE(cJSON_GetArraySize(cases) > 60);
	const cJSON *item;
	cJSON_ArrayForEach (item, cases) {
		const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, "text"));
		const char *basic = cJSON_GetStringValue(cJSON_GetObjectItem(item, "basic"));
		const char *full = cJSON_GetStringValue(cJSON_GetObjectItem(item, "full"));
		CHECK(prepares_string(SMALTI_CLEANING_RAW, text, text), text);
		CHECK(prepares_string(SMALTI_CLEANING_BASIC, text, basic), text);
		CHECK(prepares_string(SMALTI_CLEANING_FULL, text, full), text);
	}
	cJSON_Delete(cases);
}

/* What a JSON file cannot hold. */
static void any_bytes_are_a_caption(void)
{
	static const struct {
		const char *text;
		size_t length;
		const char *expected;
		size_t expected_length;
	} cases[] = {
	    {"A\0B ", 4, "a\0b", 3},
	    {"\xff\xfe", 2, "\xef\xbf\xbd\xef\xbf\xbd", 6},
	    {"A\xe2\x82 B", 5, "a\xef\xbf\xbd b", 6},
	    {"\xf0\x9f\x98", 3, "\xef\xbf\xbd", 3},
	    {NULL, 0, "", 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK(prepares(SMALTI_CLEANING_BASIC, cases[i].text, cases[i].length, cases[i].expected,
			       cases[i].expected_length),
		      cases[i].expected);
	CHECK(prepares(SMALTI_CLEANING_RAW, "\xff\0 A", 4, "\xff\0 A", 4), "raw bytes");
	CHECK(prepares(SMALTI_CLEANING_STRIP,
		       " \xe2\x80\x83"
		       "A \xff b\n",
		       9, "A \xef\xbf\xbd b", 7),
	      "stripped alone");
	CHECK(prepares(SMALTI_CLEANING_FULL, "A\0B%00", 6, "ab", 2), "full cleaning drops NUL");
	CHECK(prepares(SMALTI_CLEANING_FULL, NULL, 0, "", 0), "empty");
}

/* Text that makes naive patterns go through the whole of it from each of its characters. */
static void hostile_captions_take_no_forever(void)
{
	static const char *const units[] = {"a",      "a.",    "a.com.",     "a1",    "<",      "<a ",
					    "<a b='", "<!--",  "&",          "&amp;", "'",      " ",
					    ". ",     "free ", "1x",         "\xff",  "%41",    "\xce\xa3",
					    "www:/",  "-",     "<template>", "1 : ",  "&#38;#", "<![cdata["};
	char *text = malloc(SMALTI_CLEANING_BYTES + 1);
	for (size_t i = 0; i < COUNT(units); i++) {
		for (size_t at = 0; at <= SMALTI_CLEANING_BYTES; at++)
			text[at] = units[i][at % strlen(units[i])];
		struct smalti_error error = SMALTI_NO_ERROR;
		size_t length;
		char *prepared = smalti_caption_prepare(cleaner, SMALTI_CLEANING_FULL, text,
							SMALTI_CLEANING_BYTES, &length, &error);
		SUCCEEDS(prepared ? 0 : -1, &error, units[i]);
		free(prepared);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	size_t length;
	FAILS(smalti_caption_prepare(cleaner, SMALTI_CLEANING_FULL, text, SMALTI_CLEANING_BYTES + 1, &length,
				     &error)
		  ? 0
		  : -1,
	      &error, SMALTI_EINVAL, "too long", "8193 bytes", "basic");
	free(text);
}

static void *clean_all(void *cases)
{
	const cJSON *item;
	cJSON_ArrayForEach (item, (const cJSON *)cases) {
		const char *text = cJSON_GetStringValue(cJSON_GetObjectItem(item, "text"));
		const char *full = cJSON_GetStringValue(cJSON_GetObjectItem(item, "full"));
		if (!prepares_string(SMALTI_CLEANING_FULL, text, full))
			return item->child;
	}
	return NULL;
}

static void threads_share_a_cleaner(void)
{
	cJSON *cases = read_cases();
	pthread_t threads[4];
	for (int i = 0; i < 4; i++)
		CU_ASSERT_EQUAL(pthread_create(&threads[i], NULL, clean_all, cases), 0);
	for (int i = 0; i < 4; i++) {
		void *failed = NULL;
		pthread_join(threads[i], &failed);
		CU_ASSERT_PTR_NULL(failed);
	}
	cJSON_Delete(cases);
}

static void cleaners_come_and_go(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	cleaner = smalti_cleaner_new(&error);
	SUCCEEDS(cleaner ? 0 : -1, &error, "new");
	CU_ASSERT_PTR_NOT_NULL_FATAL(cleaner);
	smalti_cleaner_free(NULL);
}

static void the_cleaner_goes(void)
{
	smalti_cleaner_free(cleaner);
	cleaner = NULL;
	CHECK(prepares_string(SMALTI_CLEANING_BASIC, " A ", "a"), "basic needs no cleaner");
}

static const struct test tests[] = {
    {"cleaners come and go", cleaners_come_and_go},
    {"captions are as the reference prepares them", captions_are_as_the_reference_prepares_them},
    {"any bytes are a caption", any_bytes_are_a_caption},
    {"hostile captions take no forever", hostile_captions_take_no_forever},
    {"threads share a cleaner", threads_share_a_cleaner},
    {"the cleaner goes", the_cleaner_goes},
};

TEST_MAIN("caption", tests)
