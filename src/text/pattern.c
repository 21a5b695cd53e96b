/* SPDX-License-Identifier: Apache-2.0 */
#include "text/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

/* Steps from one starting point; a caption of ordinary text takes a few dozen. */
enum { MATCH_LIMIT = 1000000 };

struct smalti_pattern {
	pcre2_code *code;
	pcre2_match_context *limits;
};

struct smalti_pattern *smalti_pattern_new(const char *expression, struct smalti_error *error)
{
	struct smalti_pattern *pattern = smalti_calloc(1, sizeof(*pattern), error);
	if (!pattern)
		return NULL;
	int code;
	PCRE2_SIZE at;
	pattern->code = pcre2_compile((PCRE2_SPTR)expression, PCRE2_ZERO_TERMINATED,
				      PCRE2_UTF | PCRE2_UCP | PCRE2_DOTALL, &code, &at, NULL);
	pattern->limits = pcre2_match_context_create(NULL);
	if (pattern->code && pattern->limits) {
		pcre2_set_match_limit(pattern->limits, MATCH_LIMIT);
		return pattern;
	}
	smalti_pattern_free(pattern);
	smalti_fail(error, SMALTI_ENOMEM, "the regular expression %s could not be compiled", expression);
	return NULL;
}

void smalti_pattern_free(struct smalti_pattern *pattern)
{
	if (!pattern)
		return;
	pcre2_code_free(pattern->code);
	pcre2_match_context_free(pattern->limits);
	free(pattern);
}

static int fail_match(int code, struct smalti_error *error)
{
	PCRE2_UCHAR message[128];
	pcre2_get_error_message(code, message, sizeof(message));
	return smalti_fail(error, code == PCRE2_ERROR_NOMEMORY ? SMALTI_ENOMEM : SMALTI_EUNSUPPORTED,
			   "text: a pattern could not be searched for: %s", (const char *)message);
}

int smalti_pattern_replace(const struct smalti_pattern *pattern, const char *replacement,
			   struct smalti_string *string, struct smalti_error *error)
{
	/* No replacement is longer than twice what it replaces. */
	size_t capacity = 2 * string->length + 1;
	char *bytes = smalti_calloc((int64_t)capacity, 1, error);
	if (!bytes)
		return -1;
	PCRE2_SIZE length = capacity;
	int code = pcre2_substitute(
	    pattern->code, (PCRE2_SPTR)string->bytes, string->length, 0,
	    PCRE2_SUBSTITUTE_GLOBAL | PCRE2_NO_UTF_CHECK | PCRE2_SUBSTITUTE_UNSET_EMPTY, NULL,
	    pattern->limits, (PCRE2_SPTR)replacement, PCRE2_ZERO_TERMINATED, (PCRE2_UCHAR *)bytes, &length);
	if (code < 0) {
		free(bytes);
		return fail_match(code, error);
	}
	free(string->bytes);
	*string = (struct smalti_string){bytes, length};
	return 0;
}

int smalti_pattern_match(const struct smalti_pattern *pattern, const struct smalti_string *string, size_t at,
			 bool *found, struct smalti_pattern_match *match, struct smalti_error *error)
{
	pcre2_match_data *data = pcre2_match_data_create(2, NULL);
	if (!data)
		return smalti_fail(error, SMALTI_ENOMEM, "text: no memory to search it");
	int code = pcre2_match(pattern->code, (PCRE2_SPTR)string->bytes, string->length, at,
			       PCRE2_ANCHORED | PCRE2_NO_UTF_CHECK, data, pattern->limits);
	int status = 0;
	*found = code > 0;
	if (code > 0) {
		const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(data);
		*match = (struct smalti_pattern_match){ends[0], ends[1], ends[0], ends[0]};
		if (code > 1 && ends[2] != PCRE2_UNSET) {
			match->group_start = ends[2];
			match->group_end = ends[3];
		}
	} else if (code != PCRE2_ERROR_NOMATCH) {
		status = fail_match(code, error);
	}
	pcre2_match_data_free(data);
	return status;
}
