/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/help.h"

#include <inttypes.h>
#include <string.h>

static void note(struct smalti_notes *notes, const char *text)
{
	size_t length = strlen(notes->text);
	snprintf(notes->text + length, sizeof(notes->text) - length, "%s%s", length ? "; " : "", text);
}

static void note_range(struct smalti_notes *notes, const struct smalti_option *row)
{
	char text[128] = "";
	if (row->kind == SMALTI_OPTION_INT64 && row->maximum < INT64_MAX)
		snprintf(text, sizeof(text), "from %" PRId64 " to %" PRId64, row->minimum, row->maximum);
	else if (row->kind == SMALTI_OPTION_INT64)
		snprintf(text, sizeof(text), "%" PRId64 " or more", row->minimum);
	else if (row->kind == SMALTI_OPTION_DOUBLE)
		snprintf(text, sizeof(text), "from %g to %g", row->least, row->most);
	else if (row->kind == SMALTI_OPTION_LIST)
		snprintf(text, sizeof(text), "may be repeated");
	if (text[0])
		note(notes, text);
}

static void note_choices(struct smalti_notes *notes, const struct smalti_option *row)
{
	char text[400] = "one of ";
	for (int i = 0; row->choices[i]; i++) {
		size_t length = strlen(text);
		snprintf(text + length, sizeof(text) - length, "%s%s", i ? ", " : "", row->choices[i]);
	}
	note(notes, text);
}

static void note_default(struct smalti_notes *notes, const struct smalti_option *row, const void *defaults)
{
	char text[300] = "";
	const void *value = (const char *)defaults + row->offset;
	const int64_t *size = value;
	const char *string = row->kind == SMALTI_OPTION_STRING ? *(const char *const *)value : NULL;
	if (row->kind == SMALTI_OPTION_INT64)
		snprintf(text, sizeof(text), "default %" PRId64, *(const int64_t *)value);
	else if (row->kind == SMALTI_OPTION_DOUBLE)
		snprintf(text, sizeof(text), "default %g", *(const double *)value);
	else if (row->kind == SMALTI_OPTION_SIZE)
		snprintf(text, sizeof(text), "default %" PRId64 "x%" PRId64, size[0], size[1]);
	else if (row->kind == SMALTI_OPTION_CHOICE && *(const int *)value >= 0)
		snprintf(text, sizeof(text), "default %s", row->choices[*(const int *)value]);
	else if (string)
		snprintf(text, sizeof(text), "default %s", string);
	if (text[0])
		note(notes, text);
}

static void note_alias(struct smalti_notes *notes, const char *alias)
{
	char text[80];
	snprintf(text, sizeof(text), "also --%s", alias);
	note(notes, text);
}

struct smalti_notes smalti_option_notes(const struct smalti_option *row, const void *defaults)
{
	struct smalti_notes notes = {""};
	note_range(&notes, row);
	if (row->kind == SMALTI_OPTION_CHOICE)
		note_choices(&notes, row);
	if (defaults && !row->has_given)
		note_default(&notes, row, defaults);
	if (row->alias)
		note_alias(&notes, row->alias);
	return notes;
}
