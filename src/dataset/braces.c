/* SPDX-License-Identifier: Apache-2.0 */
#include "dataset/dataset_format.h"

enum { BRACES_MAX = 16, DIGITS_MAX = 12 };

struct expansion {
	const char *pattern;
	int64_t count, limit;
	int depth;
	int (*each)(void *user, char *name, struct smalti_error *error);
	void *user;
};

/* What stands between two braces. */
struct range {
	int64_t first, last;
	int digits; /* at least */
};

static int expand(struct expansion *e, const char *done, const char *rest, struct smalti_error *error);

/* Expands done + text + what `rest` stands for. */
static int expand_with(struct expansion *e, const char *done, const char *text, size_t length,
		       const char *rest, struct smalti_error *error)
{
	SCOPED(free) char *longer = smalti_format(error, "%s%.*s", done, (int)length, text);
	return longer ? expand(e, longer, rest, error) : -1;
}

/* Reads a number and returns how many digits it has; 0: none, or too many. */
static int parse_digits(const char *text, int64_t *number)
{
	const int digits = (int)strspn(text, "0123456789");
	*number = 0;
	for (int i = 0; i < digits && digits <= DIGITS_MAX; i++)
		*number = 10 * *number + (text[i] - '0');
	return digits <= DIGITS_MAX ? digits : 0;
}

static bool parse_range(const char *text, size_t length, struct range *range)
{
	const int before = parse_digits(text, &range->first);
	if (!before || strncmp(text + before, "..", 2) != 0)
		return false;
	const char *second = text + before + 2;
	const int behind = parse_digits(second, &range->last);
	const bool padded = text[0] == '0' || second[0] == '0';
	range->digits = !padded ? 1 : before > behind ? before : behind;
	return behind && (size_t)(second + behind - text) == length;
}

static int expand_range(struct expansion *e, const char *done, const struct range *range, const char *rest,
			struct smalti_error *error)
{
	const int step = range->first <= range->last ? 1 : -1;
	for (int64_t i = range->first;; i += step) {
		char number[24];
		const int length = snprintf(number, sizeof(number), "%0*lld", range->digits, (long long)i);
		if (expand_with(e, done, number, (size_t)length, rest, error) < 0)
			return -1;
		if (i == range->last)
			return 0;
	}
}

static int expand_list(struct expansion *e, const char *done, const char *text, const char *end,
		       const char *rest, struct smalti_error *error)
{
	for (;;) {
		size_t length = strcspn(text, ",");
		if (length > (size_t)(end - text))
			length = (size_t)(end - text);
		if (expand_with(e, done, text, length, rest, error) < 0)
			return -1;
		if (text + length == end)
			return 0;
		text += length + 1;
	}
}

static int take(struct expansion *e, const char *name, struct smalti_error *error)
{
	if (e->count++ == e->limit)
		return smalti_fail(error, SMALTI_EINVAL, "%s: stands for more than %lld names", e->pattern,
				   (long long)e->limit);
	char *copy = smalti_format(error, "%s", name);
	return copy ? e->each(e->user, copy, error) : -1;
}

/* Expands the first pair of braces, and by recursion those behind it. */
static int expand(struct expansion *e, const char *done, const char *rest, struct smalti_error *error)
{
	const char *open = strchr(rest, '{'), *close = open ? strchr(open, '}') : NULL;
	struct range range;
	if (!close) {
		SCOPED(free) char *name = smalti_format(error, "%s%s", done, rest);
		return name ? take(e, name, error) : -1;
	}
	if (e->depth == BRACES_MAX)
		return smalti_fail(error, SMALTI_EINVAL, "%s: more than %d pairs of braces", e->pattern,
				   BRACES_MAX);
	SCOPED(free) char *before = smalti_format(error, "%s%.*s", done, (int)(open - rest), rest);
	if (!before)
		return -1;
	int status;
	e->depth++;
	if (parse_range(open + 1, (size_t)(close - open - 1), &range))
		status = expand_range(e, before, &range, close + 1, error);
	else if (memchr(open, ',', (size_t)(close - open)))
		status = expand_list(e, before, open + 1, close, close + 1, error);
	else
		status = expand_with(e, before, open, (size_t)(close - open + 1), close + 1, error);
	e->depth--;
	return status;
}

int smalti_braces_expand(const char *pattern, int64_t limit,
			 int (*each)(void *user, char *name, struct smalti_error *error), void *user,
			 struct smalti_error *error)
{
	struct expansion e = {.pattern = pattern, .limit = limit, .each = each, .user = user};
	return expand(&e, "", pattern, error);
}
