/* SPDX-License-Identifier: Apache-2.0 */
#include "text/cleaning.h"
#include "text/entities.h"
#include "text/pattern.h"

#include <strings.h>

/* What to do with the match. */
enum action {
	DROP,
	VERBATIM, /* keep all of it */
	CONTENTS, /* keep the first group */
	OPEN,     /* a tag; the first group is its name */
	CLOSE,
	NUMBER, /* the first group is the digits of &#...; */
	NAME,   /* the first group is the name of &...; */
};

#define TAG_NAME "[a-zA-Z][^\\t\\n\\r\\f />\\0]*"
#define ATTRIBUTES                                                                                           \
	"(?>(?:[" SMALTI_SPACES "/]*(?:(?<=['\"" SMALTI_SPACES "/])[^" SMALTI_SPACES "/>][^" SMALTI_SPACES   \
	"/=>]*(?:" SMALTI_SPACE "*=+" SMALTI_SPACE "*(?:'[^']*'|\"[^\"]*\"|(?!['\"])[^>" SMALTI_SPACES       \
	"]*)" SMALTI_SPACE "*)?(?:" SMALTI_SPACE "|/(?!>))*)*)?" SMALTI_SPACE "*)"
/* script and style: everything up to the end tag, or all that is left. */
#define RAW(name)                                                                                            \
	"<(?i:" name ")(?=[" SMALTI_SPACES ">])" ATTRIBUTES "(?<!/)>(?:.*?</" SMALTI_SPACE "*(?i:" name      \
	")" SMALTI_SPACE "*>|.*)"

/* Markup that `<` or `&` can begin; the first match counts. Without one, the character stands for itself. */
static const struct {
	const char *pattern;
	enum action action;
} markup[] = {
    {"<!--.*?--" SMALTI_SPACE "*>", DROP},
    {"<!\\[(?i:cdata)\\[(.*?)\\]" SMALTI_SPACE "*\\]" SMALTI_SPACE "*>", CONTENTS},
    {"<!\\[(?i:temp|ignore|include|rcdata)\\b.*?\\]" SMALTI_SPACE "*\\]" SMALTI_SPACE "*>", DROP},
    {"<!\\[(?i:if|else|endif)\\b.*?\\]" SMALTI_SPACE "*>", DROP},
    {"<!(?!--|\\[)[^>]*>", DROP},
    {"<\\?[^>]*>", DROP},
    {"</" SMALTI_SPACE "*(" TAG_NAME ")?[^>]*>", CLOSE},
    {RAW("script"), DROP},
    {RAW("style"), DROP},
    {"<(?=[^>]*>)(" TAG_NAME ")" ATTRIBUTES "/?>", OPEN},
    /* begun, but not ended: up to the next `<` */
    {"<(?=[a-zA-Z/!?])(?:[^>]*>|[^<]*(?=<))", VERBATIM},
    {"&#([0-9]+|[xX][0-9a-fA-F]+)(?:;|(?=[^0-9a-fA-F]))", NUMBER},
    {"&([a-zA-Z][-.a-zA-Z0-9]*)(?:;|(?=[^a-zA-Z0-9]))", NAME},
    {"&(?=[a-zA-Z]\\z)", DROP},
};

enum { MARKUP_COUNT = COUNT_OF(markup) };

struct smalti_html {
	struct smalti_pattern *patterns[MARKUP_COUNT];
};

struct output {
	FILE *to;
	const char *hidden; /* the element whose contents are left out, NULL: none */
	int depth;          /* how many of this element are open */
};

struct smalti_html *smalti_html_new(struct smalti_error *error)
{
	struct smalti_html *html = smalti_calloc(1, sizeof(*html), error);
	for (int i = 0; html && i < MARKUP_COUNT; i++) {
		html->patterns[i] = smalti_pattern_new(markup[i].pattern, error);
		if (!html->patterns[i]) {
			smalti_html_free(html);
			return NULL;
		}
	}
	return html;
}

void smalti_html_free(struct smalti_html *html)
{
	for (int i = 0; html && i < MARKUP_COUNT; i++)
		smalti_pattern_free(html->patterns[i]);
	free(html);
}

static void put(const struct output *output, const char *bytes, size_t length)
{
	if (!output->hidden)
		fwrite(bytes, 1, length, output->to);
}

static void put_number(const struct output *output, const char *digits, size_t length)
{
	if (!output->hidden)
		smalti_put_character(output->to,
				     smalti_windows_1252(smalti_character_number(digits, length)));
}

/* Writes a name; BeautifulSoup keeps an unknown one without its semicolon. */
static void put_name(const struct output *output, const char *name, size_t length)
{
	const char *text = smalti_entity(name, length);
	if (text) {
		put(output, text, strlen(text));
	} else {
		put(output, "&", 1);
		put(output, name, length);
	}
}

static bool is_name(const char *name, size_t length, const char *expected)
{
	return strlen(expected) == length && strncasecmp(name, expected, length) == 0;
}

static void open_tag(struct output *output, const char *name, size_t length)
{
	static const char *const hidden[] = {"template", "rt", "rp"};
	if (output->hidden) {
		output->depth += is_name(name, length, output->hidden);
		return;
	}
	for (size_t i = 0; i < COUNT_OF(hidden); i++) {
		if (is_name(name, length, hidden[i])) {
			output->hidden = hidden[i];
			output->depth = 1;
		}
	}
}

static void close_tag(struct output *output, const char *name, size_t length)
{
	if (output->hidden && is_name(name, length, output->hidden) && --output->depth == 0)
		output->hidden = NULL;
}

static void act(struct output *output, enum action action, const char *text,
		const struct smalti_pattern_match *match)
{
	const char *group = text + match->group_start;
	size_t length = match->group_end - match->group_start;
	switch (action) {
	case DROP:
		return;
	case VERBATIM:
		put(output, text + match->start, match->end - match->start);
		return;
	case CONTENTS:
		put(output, group, length);
		return;
	case OPEN:
		if (text[match->end - 2] != '/')
			open_tag(output, group, length);
		return;
	case CLOSE:
		close_tag(output, group, length);
		return;
	case NUMBER:
		put_number(output, group, length);
		return;
	case NAME:
		put_name(output, group, length);
		return;
	}
}

/* Consumes the markup at *at, or the one character there. */
static int step(const struct smalti_html *html, const struct smalti_string *from, size_t *at,
		struct output *output, struct smalti_error *error)
{
	for (int i = 0; i < MARKUP_COUNT; i++) {
		bool found;
		struct smalti_pattern_match match;
		if (smalti_pattern_match(html->patterns[i], from, *at, &found, &match, error))
			return -1;
		if (found) {
			act(output, markup[i].action, from->bytes, &match);
			*at = match.end;
			return 0;
		}
	}
	put(output, from->bytes + *at, 1);
	++*at;
	return 0;
}

static int write_text(const struct smalti_html *html, const struct smalti_string *from, FILE *to,
		      struct smalti_error *error)
{
	struct output output = {to, NULL, 0};
	for (size_t at = 0; at < from->length;) {
		size_t plain = at;
		while (plain < from->length && from->bytes[plain] != '<' && from->bytes[plain] != '&')
			plain++;
		put(&output, from->bytes + at, plain - at);
		at = plain;
		if (at < from->length && step(html, from, &at, &output, error))
			return -1;
	}
	return 0;
}

int smalti_html_text(const struct smalti_html *html, struct smalti_string *string, struct smalti_error *error)
{
	struct smalti_rewriting text;
	if (smalti_rewrite(&text, error))
		return -1;
	return smalti_rewritten(&text, string, write_text(html, string, text.to, error), error);
}
