/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/numbers.h"
#include "harness.h"

#include <string.h>

static void numbers_are_short(void)
{
	typedef const char *format(double value, char text[SMALTI_NUMBER]);
	static const struct {
		format *format;
		double value;
		const char *text;
	} cases[] = {
	    {smalti_number_bytes, 100, "100 B"},
	    {smalti_number_bytes, 1536, "1.50 KiB"},
	    {smalti_number_bytes, 3221225472.0, "3 GiB"},
	    {smalti_number_bytes, 0, "0 B"},
	    {smalti_number_bytes, 1023.4, "1023 B"},
	    {smalti_number_bytes, 1023.6, "1.00 KiB"},
	    {smalti_number_bytes, 10468982784.0, "9.75 GiB"},
	    {smalti_number_seconds, 0, "0 s"},
	    {smalti_number_seconds, 0.00512, "5.12 ms"},
	    {smalti_number_seconds, 0.5, "0.5 s"},
	    {smalti_number_seconds, 42.4, "42 s"},
	    {smalti_number_seconds, 59.9, "1:00"},
	    {smalti_number_seconds, 3725, "1:02:05"},
	};
	char text[SMALTI_NUMBER];
	for (size_t i = 0; i < COUNT(cases); i++)
		CHECK(strcmp(cases[i].format(cases[i].value, text), cases[i].text) == 0, text);
}

static void one_is_no_plural(void)
{
	CU_ASSERT_STRING_EQUAL(smalti_plural(0), "s");
	CU_ASSERT_STRING_EQUAL(smalti_plural(1), "");
	CU_ASSERT_STRING_EQUAL(smalti_plural(2), "s");
}

static const struct test tests[] = {
    {"numbers are short", numbers_are_short},
    {"one is no plural", one_is_no_plural},
};

TEST_MAIN("numbers", tests)
