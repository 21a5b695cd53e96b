/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"
#include "harness.h"

static void whole_numbers(void)
{
	static const struct {
		const char *text;
		int64_t low, high;
		bool good;
		int64_t value;
	} cases[] = {
	    {"0", 0, 10, true, 0},
	    {"10", 0, 10, true, 10},
	    {"007", 0, 10, true, 7},
	    {"11", 0, 10, false, 0},
	    {"-1", 0, 10, false, 0},
	    {"-9223372036854775808", INT64_MIN, INT64_MAX, true, INT64_MIN},
	    {"9223372036854775807", INT64_MIN, INT64_MAX, true, INT64_MAX},
	    {"9223372036854775808", INT64_MIN, INT64_MAX, false, 0},
	    {"-9223372036854775809", INT64_MIN, INT64_MAX, false, 0},
	    {"99999999999999999999999", INT64_MIN, INT64_MAX, false, 0},
	    {"", 0, 10, false, 0},
	    {"-", -10, 10, false, 0},
	    {"--1", -10, 10, false, 0},
	    {" 1", 0, 10, false, 0},
	    {"1 ", 0, 10, false, 0},
	    {"+1", 0, 10, false, 0},
	    {"0x1", 0, 10, false, 0},
	    {"1.0", 0, 10, false, 0},
	    {"1e1", 0, 10, false, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t value = 0;
		int status = smalti_parse_int64(cases[i].text, cases[i].low, cases[i].high, &value, &error);
		if (cases[i].good)
			SUCCEEDS(status, &error, cases[i].text);
		else
			FAILS(status, &error, SMALTI_EINVAL, cases[i].text, "whole number from",
			      cases[i].text);
		CHECK(value == cases[i].value, cases[i].text);
	}
}

static void seeds(void)
{
	static const struct {
		const char *text;
		bool good;
		uint64_t value;
	} cases[] = {
	    {"0", true, 0},
	    {"9007199254740993", true, 9007199254740993u},
	    {"9223372036854775808", true, UINT64_C(1) << 63},
	    {"18446744073709551615", true, UINT64_MAX},
	    {"-1", true, UINT64_MAX},
	    {"-9223372036854775808", true, UINT64_C(1) << 63},
	    {"18446744073709551616", false, 0},
	    {"-9223372036854775809", false, 0},
	    {"1.5", false, 0},
	    {"", false, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		uint64_t value = 0;
		int status = smalti_parse_seed(cases[i].text, &value, &error);
		if (cases[i].good)
			SUCCEEDS(status, &error, cases[i].text);
		else
			FAILS(status, &error, SMALTI_EINVAL, cases[i].text, "2^64-1", cases[i].text);
		CHECK(value == cases[i].value, cases[i].text);
	}
}

static void decimals(void)
{
	static const struct {
		const char *text;
		bool good;
		double value;
	} cases[] = {
	    {"4.5", true, 4.5},  {"-1e2", true, -100}, {".5", true, .5},    {"7", true, 7},
	    {"4,5", false, 0},   {"1e999", false, 0},  {"nan", false, 0},   {"inf", false, 0},
	    {"0x1p3", false, 0}, {"", false, 0},       {" 1", false, 0},    {"1-", false, 0},
	    {"1001", false, 0},  {"-1001", false, 0},  {"1e-400", true, 0}, {"e", false, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		double value = 0;
		int status = smalti_parse_double(cases[i].text, -1000, 1000, &value, &error);
		if (cases[i].good)
			SUCCEEDS(status, &error, cases[i].text);
		else
			FAILS(status, &error, SMALTI_EINVAL, cases[i].text, "from -1000 to 1000",
			      cases[i].text);
		CHECK(value == cases[i].value, cases[i].text);
	}
}

static void amounts_of_memory(void)
{
	static const struct {
		const char *text;
		bool good;
		int64_t value;
	} cases[] = {
	    {"0", true, 0},
	    {"123", true, 123},
	    {"123B", true, 123},
	    {"64K", true, 65536},
	    {"1500M", true, INT64_C(1500) << 20},
	    {"12G", true, INT64_C(12) << 30},
	    {"8388607T", true, INT64_C(8388607) << 40},
	    {"8388608T", false, 0},
	    {"9223372036854775807", true, INT64_MAX},
	    {"9223372036854775808", false, 0},
	    {"99999999999999999999T", false, 0},
	    {"12g", false, 0},
	    {"12GB", false, 0},
	    {"12 G", false, 0},
	    {"G", false, 0},
	    {"-1G", false, 0},
	    {"1.5G", false, 0},
	    {"", false, 0},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t value = 0;
		int status = smalti_parse_bytes(cases[i].text, 0, INT64_MAX, &value, &error);
		if (cases[i].good)
			SUCCEEDS(status, &error, cases[i].text);
		else
			FAILS(status, &error, SMALTI_EINVAL, cases[i].text, "like 12G", cases[i].text);
		CHECK(value == cases[i].value, cases[i].text);
	}
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t value;
	FAILS(smalti_parse_bytes("1K", 2048, 4096, &value, &error), &error, SMALTI_EINVAL, "range",
	      "from 2048 to 4096");
}

static void sizes_in_pixels(void)
{
	static const struct {
		const char *text;
		bool good;
		struct smalti_size value;
	} cases[] = {
	    {"512x768", true, {512, 768}},
	    {"16x1000000000", true, {16, 1000000000}},
	    {"15x512", false, {0, 0}},
	    {"512x1000000001", false, {0, 0}},
	    {"512x18446744073709551617", false, {0, 0}},
	    {"18446744073709551615x16", false, {0, 0}},
	    {"12", false, {0, 0}},
	    {"-1", false, {0, 0}},
	    {"512x", false, {0, 0}},
	    {"x512", false, {0, 0}},
	    {"512X512", false, {0, 0}},
	    {"512x512x3", false, {0, 0}},
	    {"512x-512", false, {0, 0}},
	    {"", false, {0, 0}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_size value = {0, 0};
		int status = smalti_parse_size(cases[i].text, 16, 1000000000, &value, &error);
		if (cases[i].good)
			SUCCEEDS(status, &error, cases[i].text);
		else
			FAILS(status, &error, SMALTI_EINVAL, cases[i].text, "expected", cases[i].text);
		CHECK(value.width == cases[i].value.width && value.height == cases[i].value.height,
		      cases[i].text);
	}
}

static void numbers(void)
{
	static const struct {
		const char *text;
		int count;
		bool good;
	} cases[] = {
	    {"1", 1, true},    {"1:0.5:2e1", 3, true}, {"", 1, false},     {"1:2", 1, false},
	    {"1:2", 3, false}, {"1:-2", 2, false},     {"1::2", 3, false}, {"1:2:", 2, false},
	    {"1,2", 2, false}, {"a", 1, false},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		double values[3] = {0, 0, 0};
		const int status = smalti_parse_numbers(cases[i].text, ':', cases[i].count, values, &error);
		if (!cases[i].good)
			FAILS(status, &error, SMALTI_EINVAL, cases[i].text, "numbers", "':'");
		else
			SUCCEEDS(status, &error, cases[i].text);
	}
	double values[3];
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_parse_numbers("1:0.5:2e1", ':', 3, values, &error), &error, "values");
	CHECK(values[0] == 1 && values[1] == 0.5 && values[2] == 20, "values");
}

static const struct test tests[] = {
    {"numbers", numbers},   {"whole numbers", whole_numbers},         {"seeds", seeds},
    {"decimals", decimals}, {"amounts of memory", amounts_of_memory}, {"sizes in pixels", sizes_in_pixels},
};

TEST_MAIN("parse", tests)
