/* SPDX-License-Identifier: Apache-2.0 */
#include "share/range.h"

enum { DIGITS = 12 };

void smalti_range_name(int64_t first, int64_t end, char name[SMALTI_RANGE_NAME])
{
	snprintf(name, SMALTI_RANGE_NAME, "%0*" PRId64 "-%0*" PRId64, DIGITS, first, DIGITS, end);
}

static bool read_digits(const char *text, int64_t *value)
{
	*value = 0;
	for (int i = 0; i < DIGITS; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		*value = 10 * *value + (text[i] - '0');
	}
	return true;
}

const char *smalti_range_parse(const char *text, int64_t *first, int64_t *end)
{
	if (!read_digits(text, first) || text[DIGITS] != '-' || !read_digits(text + DIGITS + 1, end) ||
	    *end <= *first)
		return NULL;
	return text + 2 * DIGITS + 1;
}

/* Returns floor(part × length / parts), without the product. */
static int64_t cut(int64_t length, int64_t part, int64_t parts)
{
	const int64_t rest = length % parts;
	return length / parts * part + (int64_t)((__int128)rest * part / parts);
}

struct smalti_range smalti_range_part(const struct smalti_range *range, int64_t part, int64_t parts)
{
	const int64_t length = range->end - range->first;
	return (struct smalti_range){range->first + cut(length, part, parts),
				     range->first + cut(length, part + 1, parts)};
}
