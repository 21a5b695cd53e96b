/* SPDX-License-Identifier: Apache-2.0
 *
 * Public functions refuse wrong arguments with SMALTI_EINVAL and the argument's name. */
#include "harness.h"
#include "smalti/export.h"
#include "smalti/extract.h"
#include "smalti/features.h"
#include "smalti/verify.h"

#include <stddef.h>
#include <string.h>

/* A field of an options' structure, the wrong value, and what the message calls it. */
struct wrong {
	size_t offset, bytes;
	int64_t value;
	const char *word;
};
#define FIELD(type, field) offsetof(type, field), sizeof(((type *)0)->field)

static void spoil(void *options, const struct wrong *wrong)
{
	memcpy((char *)options + wrong->offset, &wrong->value, wrong->bytes);
}

/* Nobody may look at it: the arguments are checked before. */
static struct smalti_session *no_session(void)
{
	static char bytes;
	return (struct smalti_session *)&bytes;
}

#define EXTRACT(field) FIELD(struct smalti_extract_options, field)
static const struct wrong wrong_extract[] = {
    {EXTRACT(input), 0, "data set"},
    {EXTRACT(output), 0, "folder for the features"},
    {EXTRACT(text), 0, "neither the captions' nor the pictures'"},
    {EXTRACT(caption_count), 9, "keys of captions"},
    {EXTRACT(caption_count), -1, "keys of captions"},
    {EXTRACT(caption_count), 1, "key of captions: expected, found NULL"},
    {EXTRACT(cleaning), 99, "cleaning"},
    {EXTRACT(cleaning), -5, "cleaning"},
    {EXTRACT(max_tokens), -1, "tokens"},
    {EXTRACT(max_tokens), INT64_MAX, "tokens"},
    {EXTRACT(fit), 2, "fit"},
    {EXTRACT(type), 55, "type of features: expected 0 to 2, found 55"},
    {EXTRACT(compression), 3, "compression"},
    {EXTRACT(first), -1, "range of items"},
    {EXTRACT(end), -1, "range of items"},
    {EXTRACT(parts), -2, "shard of the items"},
    {EXTRACT(shard_items), -1, "items of a shard"},
    {EXTRACT(shard_items), INT64_MAX, "items of a shard"},
    {EXTRACT(shard_bytes), -1, "bytes of a shard"},
    {EXTRACT(model.precision), 7, "precision"},
};

static void extractions_are_checked(void)
{
	struct smalti_extract_options options;
	struct smalti_extract_result result;
	for (int i = 0; i < COUNT(wrong_extract); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		smalti_extract_defaults(&options);
		options.input = "absent.jsonl";
		options.output = "absent/features";
		options.text = true;
		spoil(&options, &wrong_extract[i]);
		FAILS(smalti_extract(no_session(), &options, NULL, NULL, &result, &error), &error,
		      SMALTI_EINVAL, wrong_extract[i].word, wrong_extract[i].word);
	}
	const struct {
		struct smalti_session *session;
		const struct smalti_extract_options *options;
		struct smalti_extract_result *result;
		const char *word;
	} missing[] = {{NULL, &options, &result, "session"},
		       {no_session(), NULL, &result, "options"},
		       {no_session(), &options, NULL, "result"}};
	for (int i = 0; i < COUNT(missing); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_extract(missing[i].session, missing[i].options, NULL, NULL, missing[i].result,
				     &error),
		      &error, SMALTI_EINVAL, missing[i].word, missing[i].word);
	}
}

#define EXPORT(field) FIELD(struct smalti_export_options, field)
static const struct wrong wrong_export[] = {
    {EXPORT(folder), 0, "folder of features"},
    {EXPORT(output), 0, "folder for what is exported"},
    {EXPORT(format), 9, "format of the export: expected 0 to 2, found 9"},
    {EXPORT(shard_bytes), -1, "bytes of a file"},
};

static void exports_are_checked(void)
{
	struct smalti_export_options options;
	struct smalti_export_progress progress;
	for (int i = 0; i < COUNT(wrong_export); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		smalti_export_defaults(&options);
		options.folder = "absent";
		options.output = "absent-too";
		spoil(&options, &wrong_export[i]);
		FAILS(smalti_export(&options, &progress, &error), &error, SMALTI_EINVAL, wrong_export[i].word,
		      wrong_export[i].word);
	}
	struct smalti_error error = SMALTI_NO_ERROR, other = SMALTI_NO_ERROR;
	FAILS(smalti_export(NULL, &progress, &error), &error, SMALTI_EINVAL, "no options", "options");
	FAILS(smalti_export(&options, NULL, &other), &other, SMALTI_EINVAL, "no progress", "progress");
}

static void verifications_are_checked(void)
{
	struct smalti_verify_result result;
	const struct smalti_verify_options options = {.repair = false};
	const struct {
		const char *folder;
		const struct smalti_verify_options *options;
		struct smalti_verify_result *result;
		const char *word;
	} cases[] = {
	    {NULL, &options, &result, "folder of features"},
	    {"absent", &options, NULL, "result"},
	    {"absent", NULL, &result, "absent: no folder of features"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_verify(cases[i].folder, cases[i].options, cases[i].result, &error), &error,
		      SMALTI_EINVAL, cases[i].word, cases[i].word);
	}
}

#define FEATURES(field) FIELD(struct smalti_features_options, field)
static const struct wrong wrong_features[] = {
    {FEATURES(parts), 0, "parts"},
    {FEATURES(part), 1, "part"},
    {FEATURES(buffer), -1, "negative"},
    {FEATURES(skip), -1, "negative"},
    {FEATURES(prefetch), INT64_MAX, "read ahead"},
};

static void readers_are_checked(void)
{
	struct smalti_features_row row;
	for (int i = 0; i < COUNT(wrong_features); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		struct smalti_features_options options;
		smalti_features_defaults(&options);
		spoil(&options, &wrong_features[i]);
		FAILS(smalti_features_open("absent", &options, &error) ? 0 : -1, &error, SMALTI_EINVAL,
		      wrong_features[i].word, wrong_features[i].word);
	}
	struct smalti_error errors[3] = {SMALTI_NO_ERROR};
	FAILS(smalti_features_open(NULL, NULL, &errors[0]) ? 0 : -1, &errors[0], SMALTI_EINVAL, "no folder",
	      "folder of features");
	FAILS(smalti_features_next(NULL, &row, &errors[1]), &errors[1], SMALTI_EINVAL, "next", "reader");
	FAILS(smalti_features_get(NULL, 0, &row, &errors[2]), &errors[2], SMALTI_EINVAL, "get", "reader");
}

static const struct test tests[] = {
    {"extractions are checked", extractions_are_checked},
    {"exports are checked", exports_are_checked},
    {"verifications are checked", verifications_are_checked},
    {"readers are checked", readers_are_checked},
};
TEST_MAIN("arguments", tests)
