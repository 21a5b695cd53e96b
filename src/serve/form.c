/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/form.h"

static const char line_end[] = "\r\n", head_end[] = "\r\n\r\n";
enum { LINE_END = 2, HEAD_END = 4, MAX_BOUNDARY = 70 };

/* Returns where the text is in [at, end); NULL: nowhere. */
static const char *find(const char *at, const char *end, const char *text, size_t length)
{
	return memmem(at, (size_t)(end - at), text, length);
}

static int fail(const char *what, struct smalti_error *error)
{
	return smalti_fail(error, SMALTI_EFORMAT, "the form: expected %s", what);
}

int smalti_form_open(struct smalti_form *form, const char *body, size_t length, struct smalti_error *error)
{
	*form = (struct smalti_form){.at = body, .end = body + length, .delimiter = body};
	const char *end = find(body, form->end, line_end, LINE_END);
	if (!end || end - body < 3 || end - body > MAX_BOUNDARY + 2 || memcmp(body, "--", 2) != 0)
		return fail("its delimiter, \"--\" and 1 to 70 characters, in the first line", error);
	form->length = (size_t)(end - body);
	form->at = end + LINE_END;
	return 0;
}

/* Reads the name of the part whose head is [at, end). */
static int read_name(const char *at, const char *end, struct smalti_form_part *part,
		     struct smalti_error *error)
{
	static const char before[] = "form-data; name=\"";
	const char *name = find(at, end, before, sizeof(before) - 1);
	const char *last =
	    name ? memchr(name + sizeof(before) - 1, '"', (size_t)(end - name) - sizeof(before) + 1) : NULL;
	if (!last)
		return fail("parts with Content-Disposition: form-data; name=\"...\"", error);
	name += sizeof(before) - 1;
	if ((size_t)(last - name) >= sizeof(part->name) || memchr(name, '\0', (size_t)(last - name)))
		return fail("names of fewer than 64 characters", error);
	memcpy(part->name, name, (size_t)(last - name));
	part->name[last - name] = '\0';
	return 0;
}

/* Returns where the part's data ends, before a line with the delimiter; NULL: nowhere. */
static const char *find_end(const struct smalti_form *form, const char *at)
{
	for (const char *line; (line = find(at, form->end, line_end, LINE_END)); at = line + LINE_END)
		if ((size_t)(form->end - line) >= LINE_END + form->length + 2 &&
		    memcmp(line + LINE_END, form->delimiter, form->length) == 0)
			return line;
	return NULL;
}

int smalti_form_next(struct smalti_form *form, struct smalti_form_part *part, struct smalti_error *error)
{
	if (!form->at)
		return 0;
	const char *head = find(form->at, form->end, head_end, HEAD_END);
	const char *end = head ? find_end(form, head + LINE_END) : NULL;
	if (!end)
		return fail("parts that end with the delimiter", error);
	if (read_name(form->at, head, part, error) < 0)
		return -1;
	part->data = head + HEAD_END;
	if (end < part->data)
		return fail("a part's data behind an empty line", error);
	part->length = (size_t)(end - part->data);
	const char *behind = end + LINE_END + form->length;
	const bool last = memcmp(behind, "--", 2) == 0;
	if (!last && memcmp(behind, line_end, LINE_END) != 0)
		return fail("an end of line behind the delimiter", error);
	form->at = last ? NULL : behind + LINE_END;
	return 1;
}
