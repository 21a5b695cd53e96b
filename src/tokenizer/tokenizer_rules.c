/* SPDX-License-Identifier: Apache-2.0 */
#include "tokenizer/tokenizer_json.h"

#define SPACE_MARK "\xe2\x96\x81" /* U+2581: stands for a space in pieces */

int smalti_tokenizer_read_part(const cJSON *file, const char *key, smalti_tokenizer_part *read, void *to,
			       struct smalti_error *error)
{
	const cJSON *part = cJSON_GetObjectItemCaseSensitive(file, key);
	struct smalti_error cause = SMALTI_NO_ERROR;
	char found[64];
	int status = -1;
	if (cJSON_IsObject(part))
		status = read(part, to, &cause);
	else
		smalti_fail(&cause, SMALTI_EUNSUPPORTED, "expected an object, found %s",
			    smalti_json_describe(part, found));
	return status ? smalti_fail(error, cause.code, "\"%s\": %s", key, cause.message) : 0;
}

/* Reads which of `names` the part's "type" is. */
static int read_type(const cJSON *part, const char *const *names, int *type, struct smalti_error *error)
{
	return smalti_json_choice(part, "type", SMALTI_JSON_REQUIRED, names, type, error);
}

/* Reads the part, or if it is a "Sequence" each of its members in `list`. */
static int read_steps(const cJSON *part, const char *list, smalti_tokenizer_part *read, void *to,
		      struct smalti_error *error)
{
	const char *type = NULL;
	if (smalti_json_string(part, "type", SMALTI_JSON_REQUIRED, &type, error))
		return -1;
	if (strcmp(type, "Sequence") != 0)
		return read(part, to, error);
	const cJSON *steps = cJSON_GetObjectItemCaseSensitive(part, list), *step;
	if (!cJSON_IsArray(steps))
		return smalti_fail(error, SMALTI_EFORMAT, "\"%s\" should be an array", list);
	cJSON_ArrayForEach (step, steps)
		if (read(step, to, error))
			return -1;
	return 0;
}

int smalti_tokenizer_expect(const cJSON *part, const char *key, bool wanted, bool otherwise,
			    struct smalti_error *error)
{
	bool value = otherwise;
	if (smalti_json_bool(part, key, SMALTI_JSON_OPTIONAL, &value, error))
		return -1;
	return value == wanted ? 0
			       : smalti_fail(error, SMALTI_EUNSUPPORTED, "\"%s\" is %s, only %s can be used",
					     key, value ? "true" : "false", wanted ? "true" : "false");
}

static int expect_text(const cJSON *part, const char *key, const char *wanted, struct smalti_error *error)
{
	return smalti_json_choice(part, key, SMALTI_JSON_REQUIRED, (const char *const[]){wanted, NULL},
				  &(int){0}, error);
}

static int expect_step(bool there, const char *type, struct smalti_error *error)
{
	return there ? 0 : smalti_fail(error, SMALTI_EUNSUPPORTED, "expected \"%s\" in it", type);
}

/* --- the text before it is cut ---------------------------------------------------------------- */

struct steps {
	const char *charsmap; /* base64 */
	bool strips, joins;   /* white space at the end, and between words */
	bool splits, marks;   /* at white space, and marks its place */
};

static int read_normalizer_step(const cJSON *step, void *to, struct smalti_error *error)
{
	static const char *const types[] = {"Precompiled", "Strip", "Replace", NULL};
	struct steps *steps = to;
	int type = 0;
	if (read_type(step, types, &type, error))
		return -1;
	if (type == 0)
		return smalti_json_string(step, "precompiled_charsmap", SMALTI_JSON_REQUIRED,
					  &steps->charsmap, error);
	if (type == 1) {
		steps->strips = true;
		return smalti_tokenizer_expect(step, "strip_right", true, false, error);
	}
	steps->joins = true;
	if (expect_text(cJSON_GetObjectItemCaseSensitive(step, "pattern"), "Regex", " {2,}", error))
		return -1;
	return expect_text(step, "content", SPACE_MARK, error);
}

static int read_normalizer(const cJSON *part, void *to, struct smalti_error *error)
{
	const struct steps *steps = to;
	if (read_steps(part, "normalizers", read_normalizer_step, to, error))
		return -1;
	return expect_step(steps->charsmap, "Precompiled", error);
}

static int read_pre_tokenizer_step(const cJSON *step, void *to, struct smalti_error *error)
{
	static const char *const types[] = {"WhitespaceSplit", "Metaspace", NULL};
	struct steps *steps = to;
	int type = 0;
	if (read_type(step, types, &type, error))
		return -1;
	if (type == 0) {
		steps->splits = true;
		return 0;
	}
	steps->marks = true;
	if (expect_text(step, "replacement", SPACE_MARK, error) ||
	    smalti_tokenizer_expect(step, "split", true, true, error))
		return -1;
	if (!cJSON_GetObjectItemCaseSensitive(step, "prepend_scheme"))
		/* before tokenizers 0.15 */
		return smalti_tokenizer_expect(step, "add_prefix_space", true, true, error);
	return expect_text(step, "prepend_scheme", "always", error);
}

static int read_pre_tokenizer(const cJSON *part, void *to, struct smalti_error *error)
{
	const struct steps *steps = to;
	if (read_steps(part, "pretokenizers", read_pre_tokenizer_step, to, error))
		return -1;
	return expect_step(steps->marks, "Metaspace", error);
}

/* Checks spaces: SentencePiece takes a run of white space for one space, and none at the ends. */
static int check_spaces(const struct steps *steps, struct smalti_error *error)
{
	if (steps->splits || (steps->strips && steps->joins))
		return 0;
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "\"pre_tokenizer\": expected \"WhitespaceSplit\", or \"Strip\" and \"Replace\" in "
			   "\"normalizer\": spaces that count cannot be used");
}

/* --- the text after it was cut ----------------------------------------------------------------- */

static int read_template_id(const cJSON *item, const char *kind, const char **id, struct smalti_error *error)
{
	const cJSON *content = cJSON_GetObjectItemCaseSensitive(item, kind);
	if (content)
		return smalti_json_string(content, "id", SMALTI_JSON_REQUIRED, id, error);
	return smalti_fail(error, SMALTI_EUNSUPPORTED,
			   "\"single\" should be a \"Sequence\" and then a \"SpecialToken\"");
}

static int read_post_processor(const cJSON *part, void *to, struct smalti_error *error)
{
	struct smalti_tokenizer_rules *rules = to;
	const char *text = NULL, *mark = NULL;
	int64_t id = 0;
	int count = 0;
	if (expect_text(part, "type", "TemplateProcessing", error))
		return -1;
	const cJSON *single = cJSON_GetObjectItemCaseSensitive(part, "single");
	if (cJSON_GetArraySize(single) != 2)
		single = NULL;
	if (read_template_id(cJSON_GetArrayItem(single, 0), "Sequence", &text, error) ||
	    read_template_id(cJSON_GetArrayItem(single, 1), "SpecialToken", &mark, error))
		return -1;
	const cJSON *tokens = cJSON_GetObjectItemCaseSensitive(part, "special_tokens");
	if (smalti_json_ints(cJSON_GetObjectItemCaseSensitive(tokens, mark), "ids", SMALTI_JSON_REQUIRED, 0,
			     INT32_MAX, 1, &id, &count, error))
		return -1;
	rules->eos = (int32_t)id;
	return 0;
}

int smalti_tokenizer_rules_read(const cJSON *file, struct smalti_tokenizer_rules *rules,
				struct smalti_error *error)
{
	struct steps steps = {0};
	if (smalti_tokenizer_read_part(file, "normalizer", read_normalizer, &steps, error) ||
	    smalti_tokenizer_read_part(file, "pre_tokenizer", read_pre_tokenizer, &steps, error) ||
	    check_spaces(&steps, error) ||
	    smalti_tokenizer_read_part(file, "post_processor", read_post_processor, rules, error))
		return -1;
	rules->charsmap = steps.charsmap;
	return 0;
}
