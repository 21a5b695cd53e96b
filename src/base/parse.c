/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parse.h"

#include <locale.h>
#include <math.h>

/* Reads decimal digits; returns the first character after them, or NULL when there is none or the
 * number is past 2^64-1. */
static const char *read_digits(const char *text, uint64_t *value)
{
	const char *c = text;
	*value = 0;
	for (; *c >= '0' && *c <= '9'; c++)
		if (__builtin_mul_overflow(*value, 10u, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(*c - '0'), value))
			return NULL;
	return c == text ? NULL : c;
}

static bool read_int64(const char *text, int64_t *value)
{
	bool negative = *text == '-';
	uint64_t magnitude;
	const char *end = read_digits(text + negative, &magnitude);
	if (!end || *end || magnitude > (uint64_t)INT64_MAX + negative)
		return false;
	*value = (int64_t)(negative ? 0 - magnitude : magnitude);
	return true;
}

int smalti_parse_int64(const char *text, int64_t minimum, int64_t maximum, int64_t *value,
		       struct smalti_error *error)
{
	int64_t number;
	if (!read_int64(text, &number) || number < minimum || number > maximum)
		return smalti_fail(error, SMALTI_EINVAL,
				   "expected a whole number from %" PRId64 " to %" PRId64 ", found '%.99s'",
				   minimum, maximum, text);
	*value = number;
	return 0;
}

int smalti_parse_seed(const char *text, uint64_t *value, struct smalti_error *error)
{
	int64_t number;
	if (read_int64(text, &number)) {
		*value = (uint64_t)number;
		return 0;
	}
	uint64_t large;
	const char *end = read_digits(text, &large);
	if (!end || *end)
		return smalti_fail(error, SMALTI_EINVAL,
				   "expected a whole number from -2^63 to 2^64-1, found '%.99s'", text);
	*value = large;
	return 0;
}

static bool read_double(const char *text, double *value)
{
	if (!*text || text[strspn(text, "0123456789+-.eE")])
		return false;
	locale_t plain = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0);
	if (!plain)
		return false;
	char *end;
	*value = strtod_l(text, &end, plain);
	freelocale(plain);
	return !*end && isfinite(*value);
}

int smalti_parse_double(const char *text, double minimum, double maximum, double *value,
			struct smalti_error *error)
{
	double number;
	if (!read_double(text, &number) || number < minimum || number > maximum)
		return smalti_fail(error, SMALTI_EINVAL, "expected a number from %g to %g, found '%.99s'",
				   minimum, maximum, text);
	*value = number;
	return 0;
}

int smalti_parse_numbers(const char *text, char separator, int count, double *values,
			 struct smalti_error *error)
{
	char number[64];
	const char *at = text;
	for (int i = 0; at && i < count; i++) {
		const char *end = strchr(at, separator);
		const size_t length = end ? (size_t)(end - at) : strlen(at);
		if (length >= sizeof(number))
			break;
		memcpy(number, at, length);
		number[length] = '\0';
		if (!read_double(number, &values[i]) || values[i] < 0)
			break;
		at = end ? end + 1 : NULL;
		if (!at && i == count - 1)
			return 0;
	}
	return smalti_fail(error, SMALTI_EINVAL, "expected %d numbers with '%c' between them, found '%.99s'",
			   count, separator, text);
}

/* Returns the shift in bits of a suffix, -1 for any other text. */
static int suffix_shift(const char *suffix)
{
	static const char letters[] = "BKMGT";
	if (!*suffix)
		return 0;
	const char *letter = strchr(letters, *suffix);
	return letter && !suffix[1] ? (int)(letter - letters) * 10 : -1;
}

int smalti_parse_bytes(const char *text, int64_t minimum, int64_t maximum, int64_t *value,
		       struct smalti_error *error)
{
	uint64_t number;
	const char *suffix = read_digits(text, &number);
	int shift = suffix ? suffix_shift(suffix) : -1;
	if (shift < 0 || number > (uint64_t)INT64_MAX >> shift)
		return smalti_fail(error, SMALTI_EINVAL,
				   "expected an amount of memory like 12G, 1500M, 64K or 4096, found '%.99s'",
				   text);
	int64_t bytes = (int64_t)(number << shift);
	if (bytes < minimum || bytes > maximum)
		return smalti_fail(error, SMALTI_EINVAL,
				   "expected an amount of memory from %" PRId64 " to %" PRId64
				   " bytes, found '%.99s'",
				   minimum, maximum, text);
	*value = bytes;
	return 0;
}

int smalti_parse_size(const char *text, int64_t minimum, int64_t maximum, struct smalti_size *value,
		      struct smalti_error *error)
{
	uint64_t width, height;
	const char *end = read_digits(text, &width);
	end = end && *end == 'x' ? read_digits(end + 1, &height) : NULL;
	if (!end || *end)
		return smalti_fail(error, SMALTI_EINVAL,
				   "expected WxH in pixels, like 512x512, found '%.99s'", text);
	uint64_t low = (uint64_t)minimum, high = (uint64_t)maximum;
	if (width < low || width > high || height < low || height > high)
		return smalti_fail(error, SMALTI_EINVAL,
				   "expected width and height from %" PRId64 " to %" PRId64 ", found '%.99s'",
				   minimum, maximum, text);
	*value = (struct smalti_size){(int64_t)width, (int64_t)height};
	return 0;
}
