/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/suggest.h"

#include <string.h>

enum { LONGEST = 40 };

static int least(int a, int b)
{
	return a < b ? a : b;
}

/* Levenshtein's distance, row by row. */
static int distance(const char *a, int a_length, const char *b, int b_length)
{
	int row[LONGEST + 1];
	for (int j = 0; j <= b_length; j++)
		row[j] = j;
	for (int i = 1; i <= a_length; i++) {
		int diagonal = row[0];
		row[0] = i;
		for (int j = 1; j <= b_length; j++) {
			int changed = diagonal + (a[i - 1] != b[j - 1]);
			diagonal = row[j];
			row[j] = least(changed, least(row[j], row[j - 1]) + 1);
		}
	}
	return row[b_length];
}

/* What was typed may differ from a name in up to a third of its letters. */
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
