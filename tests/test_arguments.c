/* SPDX-License-Identifier: Apache-2.0
 *
 * Public functions refuse wrong arguments with SMALTI_EINVAL and the argument's name. */
#include "harness.h"
#include "smalti/export.h"
#include "smalti/extract.h"
#include "smalti/features.h"
#include "smalti/retrieve.h"
#include "smalti/topology.h"
#include "smalti/vae.h"
#include "smalti/verify.h"
#include "smalti/version.h"

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
    {EXTRACT(inputs), 0, "data set"},
    {EXTRACT(input_count), 0, "number of data sets"},
    {EXTRACT(output), 0, "directory for the features"},
    {EXTRACT(text), 0, "neither the captions' nor the images'"},
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
    {EXTRACT(shard_items), -2, "items of a shard"},
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
		static const char *const inputs[] = {"absent.jsonl"};
		options.inputs = inputs;
		options.input_count = 1;
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
    {EXPORT(directory), 0, "directory of features"},
    {EXPORT(output), 0, "directory for what is exported"},
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
		options.directory = "absent";
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
		const char *directory;
		const struct smalti_verify_options *options;
		struct smalti_verify_result *result;
		const char *word;
	} cases[] = {
	    {NULL, &options, &result, "directory of features"},
	    {"absent", &options, NULL, "result"},
	    {"absent", NULL, &result, "absent: no directory of features"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_error error = SMALTI_NO_ERROR;
		FAILS(smalti_verify(cases[i].directory, cases[i].options, cases[i].result, &error), &error,
		      SMALTI_EINVAL, cases[i].word, cases[i].word);
	}
}

#define INDEX(field) FIELD(struct smalti_index_options, field)
static const struct wrong wrong_index[] = {
    {INDEX(features), 0, "directory of features"},
    {INDEX(output), 0, "directory for the index"},
    {INDEX(kind), 2, "kind of index"},
    {INDEX(kind), -1, "kind of index"},
};

static void indexes_are_checked(void)
{
	struct smalti_index_progress progress;
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int i = 0; i < COUNT(wrong_index); i++) {
		struct smalti_index_options options = {.features = "absent", .output = "absent/index"};
		spoil(&options, &wrong_index[i]);
		FAILS(smalti_index_make(&options, &progress, &error), &error, SMALTI_EINVAL,
		      wrong_index[i].word, wrong_index[i].word);
	}
	FAILS(smalti_index_make(NULL, &progress, &error), &error, SMALTI_EINVAL, "no options", "options");
	FAILS(smalti_index_open(NULL, &error) ? 0 : -1, &error, SMALTI_EINVAL, "no directory", "index");
	FAILS(smalti_index_encode(NULL, no_session(), NULL, NULL, 1, NULL, &error), &error, SMALTI_EINVAL,
	      "no index", "index");
	FAILS(smalti_index_accepts(NULL, NULL, SMALTI_INDEX_CAPTIONS, NULL, &error), &error, SMALTI_EINVAL,
	      "no index", "index");
	FAILS((int)smalti_index_find(NULL, "a", &error), &error, SMALTI_EINVAL, "no index", "index");
	FAILS(smalti_index_item(NULL, 0, NULL, &error), &error, SMALTI_EINVAL, "no index", "index");
	smalti_index_close(NULL);
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
	FAILS(smalti_features_open(NULL, NULL, &errors[0]) ? 0 : -1, &errors[0], SMALTI_EINVAL,
	      "no directory", "directory of features");
	FAILS(smalti_features_next(NULL, &row, &errors[1]), &errors[1], SMALTI_EINVAL, "next", "reader");
	FAILS(smalti_features_get(NULL, 0, &row, &errors[2]), &errors[2], SMALTI_EINVAL, "get", "reader");
}

#define REQUEST(field) FIELD(struct smalti_request, field)
static const struct wrong wrong_requests[] = {
    {REQUEST(prompt), 0, "prompt: expected, found NULL"},
    {REQUEST(width), 15, "width"},
    {REQUEST(height), -1, "height"},
    {REQUEST(images), 0, "images"},
    {REQUEST(steps), 0, "steps"},
    {REQUEST(cleaning), -5, "cleaning: expected 0 to 3, found -5"},
    {REQUEST(noise), 99, "noise: expected 0 to 2, found 99"},
    {REQUEST(tile_rows), -1, "tile-rows"},
};

static void never_called(void *user, int status, const struct smalti_error *error)
{
	(void)user, (void)status, (void)error;
	CU_FAIL("done() of a request that was refused");
}

static void requests_are_checked(struct smalti_session *session, struct smalti_model *model)
{
	const struct smalti_image_callbacks callbacks = {.done = never_called}, without_done = {.user = NULL};
	struct smalti_error error = SMALTI_NO_ERROR; /* one for all: it holds the last failure */
	struct smalti_request request;
	struct smalti_batch *batch = smalti_batch_open(model, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(batch);
	for (int i = 0; i < COUNT(wrong_requests); i++) {
		smalti_request_defaults(&request);
		spoil(&request, &wrong_requests[i]);
		FAILS(smalti_request_resolve(model, &request, &error) ? 0 : -1, &error, SMALTI_EINVAL,
		      wrong_requests[i].word, wrong_requests[i].word);
	}
	FAILS(smalti_request_resolve(NULL, &request, &error) ? 0 : -1, &error, SMALTI_EINVAL, "no model",
	      "model");
	FAILS(smalti_request_resolve(model, NULL, &error) ? 0 : -1, &error, SMALTI_EINVAL, "no request",
	      "request");
	smalti_request_defaults(&request);
	request.images = 2;
	struct smalti_plan *plan = smalti_request_resolve(model, &request, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(plan);
	for (int image = -1; image <= 5; image += 3)
		FAILS(smalti_batch_submit(batch, plan, image, &callbacks, &error), &error, SMALTI_EINVAL,
		      "image", "image: expected 0 to 1, found");
	const struct {
		struct smalti_batch *batch;
		struct smalti_plan *plan;
		const struct smalti_image_callbacks *callbacks;
		const char *word;
	} missing[] = {{NULL, plan, &callbacks, "batch"},
		       {batch, NULL, &callbacks, "plan"},
		       {batch, plan, NULL, "callbacks"},
		       {batch, plan, &without_done, "'done'"}};
	for (int i = 0; i < COUNT(missing); i++)
		FAILS(smalti_batch_submit(missing[i].batch, missing[i].plan, 0, missing[i].callbacks, &error),
		      &error, SMALTI_EINVAL, missing[i].word, missing[i].word);
	struct smalti_model *other = smalti_model_open(session, NULL, &error);
	struct smalti_plan *others = smalti_request_resolve(other, &request, &error);
	FAILS(smalti_batch_submit(batch, others, 0, &callbacks, &error), &error, SMALTI_EINVAL,
	      "another model's plan", "batch's model");
	smalti_plan_free(others);
	smalti_model_close(other);
	smalti_plan_free(plan);
	smalti_batch_close(batch);
	FAILS(smalti_batch_open(NULL, &error) ? 0 : -1, &error, SMALTI_EINVAL, "no model", "model");
}

static int no_rows(void *user, int64_t first, int64_t count, const void *rgb, struct smalti_error *error)
{
	(void)user, (void)first, (void)count, (void)rgb;
	return smalti_fail(error, SMALTI_EIO, "rows of a decoding that was refused");
}

#define DECODING(field) FIELD(struct smalti_vae_decoding, field)
static const struct wrong wrong_decodings[] = {
    {DECODING(latents), 0, "latents"},       {DECODING(rows), 0, "'rows'"},
    {DECODING(request.height), 0, "height"}, {DECODING(request.width), -1, "width"},
    {DECODING(samples), 3, "samples"},       {DECODING(request.tile_rows), -1, "tile rows"},
};

static void decodings_are_checked(struct smalti_vae *vae)
{
	static const float latents[64];
	struct smalti_error error = SMALTI_NO_ERROR;
	for (int i = 0; i < COUNT(wrong_decodings); i++) {
		struct smalti_vae_decoding decoding = {
		    .request = {.height = 16, .width = 16}, .latents = latents, .rows = no_rows};
		spoil(&decoding, &wrong_decodings[i]);
		FAILS(smalti_vae_decode_image(vae, &decoding, &error), &error, SMALTI_EINVAL,
		      wrong_decodings[i].word, wrong_decodings[i].word);
	}
	float planes[64];
	const struct smalti_vae_encoding nowhere = {.request = {.height = 16, .width = 16}, .mean = planes};
	FAILS(smalti_vae_encode_image(vae, &nowhere, &error), &error, SMALTI_EINVAL, "no rows", "'rows'");
	FAILS(smalti_vae_encode_image(vae, NULL, &error), &error, SMALTI_EINVAL, "nothing", "encoding");
	FAILS(smalti_vae_decode_image(NULL, NULL, &error), &error, SMALTI_EINVAL, "no VAE", "VAE");
}

static void models_and_sessions_are_checked(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open(NULL, &error); /* NULL: the defaults */
	CU_ASSERT_PTR_NOT_NULL_FATAL(session);
	const struct smalti_model_options precise = {.precision = 7};
	const struct smalti_vae_options vaes = {.precision = -1};
	struct smalti_topology *topology;
	FAILS(smalti_model_open(NULL, NULL, &error) ? 0 : -1, &error, SMALTI_EINVAL, "model", "session");
	FAILS(smalti_model_open(session, &precise, &error) ? 0 : -1, &error, SMALTI_EINVAL, "model",
	      "precision: expected 0 to 3, found 7");
	FAILS(smalti_vae_open(session, &vaes, &error) ? 0 : -1, &error, SMALTI_EINVAL, "VAE",
	      "precision: expected 0 to 3, found -1");
	FAILS(smalti_topology_read(NULL, &topology, &error), &error, SMALTI_EINVAL, "topology", "session");
	FAILS(smalti_topology_read(session, NULL, &error), &error, SMALTI_EINVAL, "topology", "topology");
	struct smalti_model *model = smalti_model_open(session, NULL, &error);
	struct smalti_vae *vae = smalti_vae_open(session, NULL, &error);
	CU_ASSERT_PTR_NOT_NULL_FATAL(model);
	CU_ASSERT_PTR_NOT_NULL_FATAL(vae);
	requests_are_checked(session, model);
	decodings_are_checked(vae);
	smalti_vae_close(vae);
	smalti_model_close(model);
	SUCCEEDS(smalti_session_close(session, NULL), &(struct smalti_error)SMALTI_NO_ERROR, "close");
}

static void an_error_holds_the_last_failure(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	FAILS(smalti_features_open("/absent-1", NULL, &error) ? 0 : -1, &error, SMALTI_ENOENT, "first",
	      "/absent-1");
	FAILS(smalti_features_open("/absent-2", NULL, &error) ? 0 : -1, &error, SMALTI_ENOENT, "second",
	      "/absent-2");
	CU_ASSERT_PTR_NULL(smalti_features_open("/absent-3", NULL, NULL));
	CU_ASSERT_STRING_EQUAL(smalti_version(), SMALTI_VERSION);
}

static const struct test tests[] = {
    {"extractions are checked", extractions_are_checked},
    {"exports are checked", exports_are_checked},
    {"indexes are checked", indexes_are_checked},
    {"verifications are checked", verifications_are_checked},
    {"readers are checked", readers_are_checked},
    {"models and sessions are checked", models_and_sessions_are_checked},
    {"an error holds the last failure", an_error_holds_the_last_failure},
};
TEST_MAIN("arguments", tests)
