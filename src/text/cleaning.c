/* SPDX-License-Identifier: Apache-2.0 */
#include "text/cleaning.h"
#include "text/entities.h"
#include "text/pattern.h"

typedef int transformation(struct smalti_string *string, struct smalti_error *error);
static transformation unquote, strip, spread_dashes, unescape;

#define S      SMALTI_SPACE
#define HOST   "[a-zA-Z0-9.-]"
#define DOMAIN HOST "+[.](?:com|co|ru|net|org|edu|gov|it)[\\w/-]*\\b/?(?!@)"
/* A run of characters without a match at its start has none later: skipping the run keeps the time from
 * growing with its square. */
#define SKIP(run) "|" run "+(*SKIP)(*FAIL)"
#define URL(name) "\\b(?:" name ":(?:/{1,3}|[a-zA-Z0-9%])|" DOMAIN SKIP("(?:(?!" name ":)" HOST ")") ")"
#define FILES     "(?:png|jpg|jpeg|bmp|webp|eps|pdf|apk|mp4)"
#define NUMBER    "\\d+\\.?\\d*"

#define IDEOGRAPHS                                                                                           \
	"[\\x{31c0}-\\x{31ef}\\x{31f0}-\\x{31ff}\\x{3200}-\\x{32ff}\\x{3300}-\\x{33ff}"                      \
	"\\x{3400}-\\x{4dbf}\\x{4dc0}-\\x{4dff}\\x{4e00}-\\x{9fff}]"
#define DASHES                                                                                               \
	"[-\\x{58a}\\x{5be}\\x{1400}\\x{1806}\\x{2010}-\\x{2015}\\x{2e17}\\x{2e1a}\\x{2e3a}\\x{2e3b}"        \
	"\\x{2e40}\\x{301c}\\x{3030}\\x{30a0}\\x{fe31}\\x{fe32}\\x{fe58}\\x{fe63}\\x{ff0d}]"

#define REPLACE(step, expression, by) .number = (step), .pattern = (expression), .replacement = (by)
#define CALL(step, name)              .number = (step), .function = (name)

/* A step is a function, or a pattern and its replacement, or the text of HTML. The numbers are those of
 * docs/reference.md 2.3. */
static const struct {
	int number;
	const char *pattern, *replacement;
	transformation *function;
} steps[] = {
    {CALL(1, unquote)},
    {CALL(2, strip)},
    {CALL(2, smalti_string_lower)},
    {REPLACE(3, "<person>", "person")},
    {REPLACE(4, URL("https?"), "")},
    {REPLACE(4, URL("www"), "")},
    {.number = 5}, /* HTML */
    {REPLACE(6, "@\\w+\\b", "")},
    {REPLACE(7, IDEOGRAPHS "+", "")},
    {REPLACE(8, DASHES "+", "-")},
    {REPLACE(9, "[`´«»“”¨]", "\"")},
    {REPLACE(9, "[‘’]", "'")},
    {REPLACE(10, "&quot;?", "")},
    {REPLACE(10, "&amp", "")},
    {REPLACE(11, "\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}", " ")},
    {REPLACE(12, "\\d:\\d\\d" S "+$", "")},
    {REPLACE(13, "\\\\n", " ")},
    {REPLACE(14, "#\\d{1,3}\\b", "")},
    {REPLACE(14, "#\\d{5,}\\b", "")},
    {REPLACE(14, "\\b\\d{6,}\\b", "")},
    {REPLACE(15, SMALTI_NON_SPACE "+\\." FILES SKIP(SMALTI_NON_SPACE), "")},
    {REPLACE(16, "[\"']{2,}", "\"")},
    {REPLACE(16, "\\.{2,}", " ")},
    {REPLACE(17, "[#®•©™&@·º½¾¿¡§~)(\\][}{|\\\\/*]+", " ")},
    {REPLACE(18, S "+\\." S "+", " ")},
    {CALL(19, spread_dashes)},
    {CALL(20, smalti_fix_text)},
    {CALL(20, unescape)},
    {CALL(20, unescape)},
    {REPLACE(21, "\\b[a-zA-Z]{1,3}\\d{3,15}\\b", "")},
    {REPLACE(21, "\\b[a-zA-Z]+\\d+[a-zA-Z]+\\b", "")},
    {REPLACE(21, "\\b\\d+[a-zA-Z]+\\d+\\b", "")},
    {REPLACE(22, "(?:worldwide" S "+)?(?:free" S "+)?shipping", "")},
    {REPLACE(22, "(?:free" S ")?download(?:" S "free)?", "")},
    {REPLACE(22, "\\bclick\\b" S "(?:for|on)" S "\\w+", "")},
    {REPLACE(22, "\\b" FILES "(?:" S "images?)?", "")},
    {REPLACE(22, "\\bpage" S "+\\d+\\b", "")},
    {REPLACE(23, "\\b\\d*[a-zA-Z]+\\d+[a-zA-Z]+\\d+[a-zA-Z\\d]*\\b", " ")},
    {REPLACE(24, "\\b" NUMBER "[xх×]" NUMBER "\\b", "")},
    {REPLACE(25, "\\b" S "+:" S "+", ": ")},
    {REPLACE(25, "(\\D[,./])\\b", "$1 ")},
    {REPLACE(25, S "+", " ")},
    {REPLACE(26, "^[\"'](.+)[\"']$", "$1")},
    {REPLACE(26, "^['_,:;-]", "")},
    {REPLACE(26, "['_,:+-]$", "")},
    {REPLACE(26, "^\\." SMALTI_NON_SPACE "+$", "")},
    {CALL(26, strip)},
};

enum { STEP_COUNT = COUNT_OF(steps) };

struct smalti_cleaner {
	struct smalti_html *html;
	struct smalti_pattern *patterns[STEP_COUNT]; /* NULL where the step is a function */
};

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes as Python's unquote_plus(). */
static int unquote(struct smalti_string *string, struct smalti_error *error)
{
	struct smalti_string any = *string; /* its bytes may be no UTF-8 */
	size_t length = 0;
	for (size_t at = 0; at < any.length; at++) {
		const char *here = any.bytes + at;
		bool pair = *here == '%' && any.length - at > 2;
		int high = pair ? hex_digit(here[1]) : -1, low = pair ? hex_digit(here[2]) : -1;
		if (high >= 0 && low >= 0) {
			any.bytes[length++] = (char)(high * 16 + low);
			at += 2;
		} else {
			any.bytes[length++] = *here == '+' ? ' ' : *here;
		}
	}
	const int status = smalti_string_copy(string, any.bytes, length, error);
	free(any.bytes);
	return status;
}

static int strip(struct smalti_string *string, struct smalti_error *error)
{
	(void)error;
	smalti_string_strip(string);
	return 0;
}

/* Makes more than three of - and _ spaces: this-is-my-cute-cat. */
static int spread_dashes(struct smalti_string *string, struct smalti_error *error)
{
	(void)error;
	int count = 0;
	for (size_t i = 0; i < string->length; i++)
		count += string->bytes[i] == '-' || string->bytes[i] == '_';
	for (size_t i = 0; i < string->length && count > 3; i++)
		if (string->bytes[i] == '-' || string->bytes[i] == '_')
			string->bytes[i] = ' ';
	return 0;
}

static int unescape(struct smalti_string *string, struct smalti_error *error)
{
	return smalti_unescape(string, false, error);
}

struct smalti_cleaner *smalti_cleaner_new(struct smalti_error *error)
{
	struct smalti_cleaner *cleaner = smalti_calloc(1, sizeof(*cleaner), error);
	if (!cleaner)
		return NULL;
	cleaner->html = smalti_html_new(error);
	bool complete = cleaner->html;
	for (int i = 0; complete && i < STEP_COUNT; i++) {
		if (steps[i].pattern)
			cleaner->patterns[i] = smalti_pattern_new(steps[i].pattern, error);
		complete = !steps[i].pattern || cleaner->patterns[i];
	}
	if (complete)
		return cleaner;
	smalti_cleaner_free(cleaner);
	return NULL;
}

void smalti_cleaner_free(struct smalti_cleaner *cleaner)
{
	if (!cleaner)
		return;
	smalti_html_free(cleaner->html);
	for (int i = 0; i < STEP_COUNT; i++)
		smalti_pattern_free(cleaner->patterns[i]);
	free(cleaner);
}

static int run_step(const struct smalti_cleaner *cleaner, int i, struct smalti_string *string,
		    struct smalti_error *error)
{
	if (steps[i].function)
		return steps[i].function(string, error);
	if (steps[i].pattern)
		return smalti_pattern_replace(cleaner->patterns[i], steps[i].replacement, string, error);
	return smalti_html_text(cleaner->html, string, error);
}

static int run_steps(const struct smalti_cleaner *cleaner, struct smalti_string *string,
		     struct smalti_error *error)
{
	for (int i = 0; i < STEP_COUNT; i++)
		if (run_step(cleaner, i, string, error)) {
			smalti_error_prefix(error, "cleaning step %d", steps[i].number);
			return -1;
		}
	return 0;
}

const char *const smalti_cleanings[] = {[SMALTI_CLEANING_RAW] = "raw",
					[SMALTI_CLEANING_BASIC] = "basic",
					[SMALTI_CLEANING_FULL] = "full",
					[SMALTI_CLEANING_STRIP] = "strip",
					NULL};

static int prepare(const struct smalti_cleaner *cleaner, enum smalti_cleaning cleaning,
		   struct smalti_string *string, struct smalti_error *error)
{
	if (cleaning == SMALTI_CLEANING_BASIC && smalti_string_lower(string, error))
		return -1;
	if (cleaning != SMALTI_CLEANING_FULL) {
		smalti_string_strip(string);
		return 0;
	}
	/* The reference cleans twice. */
	if (run_steps(cleaner, string, error) || run_steps(cleaner, string, error))
		return -1;
	return 0;
}

char *smalti_caption_prepare(const struct smalti_cleaner *cleaner, enum smalti_cleaning cleaning,
			     const char *text, size_t length, size_t *prepared, struct smalti_error *error)
{
	if (cleaning == SMALTI_CLEANING_FULL && length > SMALTI_CLEANING_BYTES) {
		smalti_fail(error, SMALTI_EINVAL,
			    "caption: %zu bytes, full cleaning takes at most %d; shorten it or choose basic",
			    length, (int)SMALTI_CLEANING_BYTES);
		return NULL;
	}
	if (cleaning == SMALTI_CLEANING_RAW) {
		char *copy = smalti_calloc((int64_t)length + 1, 1, error);
		if (copy && length > 0)
			memcpy(copy, text, length);
		*prepared = length;
		return copy;
	}
	struct smalti_string string;
	if (smalti_string_copy(&string, text, length, error))
		return NULL;
	if (prepare(cleaner, cleaning, &string, error)) {
		free(string.bytes);
		return NULL;
	}
	*prepared = string.length;
	return string.bytes;
}
