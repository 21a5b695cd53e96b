/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options.h"

#include <getopt.h>

/* getopt's value of row i is FIRST_ROW + i, so that letters and rows never meet. */
enum { FIRST_ROW = 256, GET_HELP = 1 << 20, GET_VERSION, GET_MAN };

static const struct option common[] = {
    {"help", no_argument, NULL, GET_HELP},
    {"version", no_argument, NULL, GET_VERSION},
    {"man", no_argument, NULL, GET_MAN},
    {NULL, 0, NULL, 0},
};
enum { COMMON = COUNT_OF(common) };

static void make_tables(const struct smalti_option_table *table, struct option *next, char *letter)
{
	*letter++ = ':'; /* distinguishes a missing argument from an unknown option */
	*letter++ = 'h';
	*letter++ = 'V';
	for (int i = 0; i < table->count; i++) {
		const struct smalti_option *row = &table->rows[i];
		if (row->kind == SMALTI_OPTION_GROUP)
			continue;
		const char *const names[] = {row->name, row->alias};
		for (int k = 0; k < 2 && names[k]; k++)
			*next++ = (struct option){names[k], row->argument ? required_argument : no_argument,
						  NULL, FIRST_ROW + i};
		if (row->letter)
			*letter++ = row->letter;
		if (row->letter && row->argument)
			*letter++ = ':';
	}
	memcpy(next, common, sizeof(common));
}

static const struct smalti_option *find_row(const struct smalti_option_table *table, int value)
{
	if (value >= FIRST_ROW)
		return value - FIRST_ROW < table->count ? &table->rows[value - FIRST_ROW] : NULL;
	for (int i = 0; value && i < table->count; i++)
		if (table->rows[i].letter == value)
			return &table->rows[i];
	return NULL;
}

static int append(struct smalti_string_list *list, const char *text, struct smalti_error *error)
{
	if (smalti_grow(&list->items, list->count, sizeof(*list->items), error) < 0)
		return -1;
	list->items[list->count++] = text;
	return 0;
}

/* Returns the index of the choice that a text is, or -1. */
static int find(const char *const *choices, const char *text)
{
	for (int i = 0; choices && choices[i]; i++)
		if (strcmp(choices[i], text) == 0)
			return i;
	return -1;
}

static int choose(const char *const *choices, const char *text, int *value, struct smalti_error *error)
{
	char names[256] = "";
	const int found = find(choices, text);
	if (found >= 0) {
		*value = found;
		return 0;
	}
	for (int i = 0; choices[i]; i++)
		smalti_append(names, sizeof(names), ", ", "%s", choices[i]);
	return smalti_fail(error, SMALTI_EINVAL, "expected one of %s, found '%.99s'", names, text);
}

/* Reads a number, or a word of the row as -1 - its index. */
static int parse_number(const struct smalti_option *row, const char *text, int64_t *number,
			struct smalti_error *error)
{
	const int word = find(row->choices, text);
	if (word >= 0) {
		*number = -1 - word;
		return 0;
	}
	if (!row->choices || smalti_parse_int64(text, row->minimum, row->maximum, number, NULL) == 0)
		return smalti_parse_int64(text, row->minimum, row->maximum, number, error);
	return smalti_fail(error, SMALTI_EINVAL,
			   "expected %s or a whole number from %" PRId64 " to %" PRId64 ", found '%.99s'",
			   row->choices[0], row->minimum, row->maximum, text);
}

static int store(const struct smalti_option *row, const char *text, void *values, struct smalti_error *error)
{
	void *to = (char *)values + row->offset;
	struct smalti_size size;
	if (row->has_given)
		*(bool *)((char *)values + row->given) = true;
	switch (row->kind) {
	case SMALTI_OPTION_GROUP:
		break;
	case SMALTI_OPTION_FLAG:
		*(bool *)to = true;
		break;
	case SMALTI_OPTION_INT64:
		return parse_number(row, text, to, error);
	case SMALTI_OPTION_SEED:
		return smalti_parse_seed(text, to, error);
	case SMALTI_OPTION_DOUBLE:
		return smalti_parse_double(text, row->real_minimum, row->real_maximum, to, error);
	case SMALTI_OPTION_BYTES:
		return smalti_parse_bytes(text, row->minimum, row->maximum, to, error);
	case SMALTI_OPTION_SIZE:
		if (smalti_parse_size(text, row->minimum, row->maximum, &size, error) < 0)
			return -1;
		((int64_t *)to)[0] = size.width;
		((int64_t *)to)[1] = size.height;
		break;
	case SMALTI_OPTION_STRING:
		*(const char **)to = text;
		break;
	case SMALTI_OPTION_LIST:
		return append(to, text, error);
	case SMALTI_OPTION_CHOICE:
		return choose(row->choices, text, to, error);
	}
	return 0;
}

static bool begins(const char *name, const char *with, int length)
{
	return name && strncmp(name, with, (size_t)length) == 0;
}

/* Fails with the option that `text` (--name or --name=value) was probably meant to be. */
static int fail_unknown(const struct smalti_option_table *table, const char *text, struct smalti_error *error)
{
	if (strncmp(text, "--", 2) != 0)
		return smalti_fail(error, SMALTI_EINVAL, "unknown option '%.99s'", text);
	int length = (int)strcspn(text, "=");
	struct smalti_suggestion best = smalti_suggest_start(text + 2, length - 2);
	int prefixed = 0;
	for (int i = 0; i < table->count; i++) {
		if (table->rows[i].kind == SMALTI_OPTION_GROUP)
			continue;
		const char *const names[] = {table->rows[i].name, table->rows[i].alias};
		for (int k = 0; k < 2 && names[k]; k++)
			smalti_suggest(&best, names[k]);
		prefixed += begins(names[0], text + 2, length - 2) || begins(names[1], text + 2, length - 2);
	}
	for (int i = 0; common[i].name; i++)
		smalti_suggest(&best, common[i].name);
	const char *what = prefixed > 1 ? "ambiguous" : "unknown";
	if (best.name)
		return smalti_fail(error, SMALTI_EINVAL, "%s option '%.*s', did you mean '--%s'?", what,
				   length, text, best.name);
	return smalti_fail(error, SMALTI_EINVAL, "%s option '%.*s'", what, length > 99 ? 99 : length, text);
}

/* Says why getopt stopped with '?' or ':' at `text`. */
static int fail_option(const struct smalti_option_table *table, int value, const char *text,
		       struct smalti_error *error)
{
	const struct smalti_option *row = find_row(table, optopt);
	if (value == ':' && row)
		return smalti_fail(error, SMALTI_EINVAL, "--%s: expected %s after it, found nothing",
				   row->name, row->argument);
	if (row || optopt >= GET_HELP)
		return smalti_fail(error, SMALTI_EINVAL, "%.*s: takes no value", (int)strcspn(text, "="),
				   text);
	if (optopt)
		return smalti_fail(error, SMALTI_EINVAL, "unknown option '-%c'",
				   optopt < ' ' || optopt > '~' ? '?' : optopt);
	return fail_unknown(table, text, error);
}

int smalti_options_parse(const struct smalti_option_table *table, int argc, char **argv, void *values,
			 enum smalti_invocation *request, int *first, struct smalti_error *error)
{
	SCOPED(free)
	struct option *long_options = smalti_calloc(2 * table->count + COMMON, sizeof(struct option), error);
	SCOPED(free) char *letters = smalti_calloc(table->count * 2 + 4, 1, error);
	if (!long_options || !letters)
		return -1;
	make_tables(table, long_options, letters);
	*request = SMALTI_RUN;
	opterr = 0;
	optind = 0; /* GNU: start afresh */
	for (;;) {
		const int value = getopt_long(argc, argv, letters, long_options, NULL);
		*first = optind;
		if (value == -1)
			return 0;
		if (value == '?' || value == ':')
			return fail_option(table, value, argv[optind - 1], error);
		if (value == 'h' || value == 'V' || value >= GET_HELP) {
			*request = value == GET_VERSION || value == 'V' ? SMALTI_SHOW_VERSION
				   : value == GET_MAN                   ? SMALTI_MAN
									: SMALTI_HELP;
			return 0;
		}
		const struct smalti_option *row = find_row(table, value);
		if (store(row, optarg, values, error)) {
			smalti_error_prefix(error, "--%s", row->name);
			return -1;
		}
	}
}

void smalti_options_free(const struct smalti_option_table *table, void *values)
{
	for (int i = 0; i < table->count; i++) {
		if (table->rows[i].kind != SMALTI_OPTION_LIST)
			continue;
		struct smalti_string_list *list = (void *)((char *)values + table->rows[i].offset);
		free(list->items);
		*list = (struct smalti_string_list){NULL, 0};
	}
}

enum { LONGEST = 40 };

/* Computes Levenshtein's distance, row by row. */
static int distance(const char *a, int a_length, const char *b, int b_length)
{
	int64_t row[LONGEST + 1];
	for (int j = 0; j <= b_length; j++)
		row[j] = j;
	for (int i = 1; i <= a_length; i++) {
		int64_t diagonal = row[0];
		row[0] = i;
		for (int j = 1; j <= b_length; j++) {
			const int64_t changed = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			row[j] = smalti_min(changed, smalti_min(row[j], row[j - 1]) + 1);
		}
	}
	return (int)row[b_length];
}

/* Allows a name to differ in a third of the letters and one more. */
struct smalti_suggestion smalti_suggest_start(const char *typed, int length)
{
	return (struct smalti_suggestion){typed, length, NULL, length / 3 + 2};
}

void smalti_suggest(struct smalti_suggestion *suggestion, const char *name)
{
	int length = (int)strlen(name);
	if (suggestion->length > LONGEST || length > LONGEST)
		return;
	int found = distance(suggestion->typed, suggestion->length, name, length);
	if (found < suggestion->distance && found < length) {
		suggestion->distance = found;
		suggestion->name = name;
	}
}
