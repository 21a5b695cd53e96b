/* SPDX-License-Identifier: Apache-2.0
 *
 * Features of a small data set through the public API: equal to the reference's, and the same rows however
 * the work is cut, stopped and shared. */
#include "extract/jobs.h"
#include "golden.h"
#include "harness.h"
#include "smalti/extract.h"
#include "stage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 14, WIDTH = 128, PLANES = 8 };

static struct smalti_session *session;
static char list[4096];

static struct smalti_extract_options small_options(const char *output)
{
	struct smalti_extract_options options;
	smalti_extract_defaults(&options);
	snprintf(list, sizeof(list), "%s", test_data("extract/InternData/data_info.json"));
	static const char *const inputs[] = {list};
	options.inputs = inputs;
	options.input_count = 1;
	options.output = output;
	options.text = options.images = true;
	options.type = SMALTI_FEATURES_F32;
	options.image_size = 256;
	options.stored_orientation = true;
	options.shard_items = 5;
	options.lease_seconds = 10;
	return options;
}

static struct smalti_extract_result extract(const struct smalti_extract_options *options,
					    smalti_extract_callback *on_progress, void *user,
					    const char *what)
{
	struct smalti_extract_result result = {0};
	struct smalti_error error = SMALTI_NO_ERROR;
	const int status = smalti_extract(session, options, on_progress, user, &result, &error);
	SUCCEEDS(status, &error, what);
	return result;
}

static struct smalti_features *open_features(const char *directory)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_features *features = smalti_features_open(directory, NULL, &error);
	SUCCEEDS(features ? 0 : -1, &error, directory);
	return features;
}

static void near(const float *found, int64_t count, const struct smalti_tensor_view *view, const char *key)
{
	CHECK(view && found && view->bytes == count * (int64_t)sizeof(float), key);
	if (!view || !found || view->bytes != count * (int64_t)sizeof(float))
		return;
	float *expected = golden_values(view);
	golden_near(found, expected, count, 5e-5, key);
	free(expected);
}

static bool same_ids(const struct smalti_features_text *text, const struct smalti_tensor_view *view)
{
	return view && view->shape[0] == text->tokens &&
	       memcmp(view->data, text->ids, (size_t)text->tokens * sizeof(int32_t)) == 0;
}

static void check_golden(const char *directory, const char *fit)
{
	struct smalti_safetensors *texts = golden_open("extract/t5.safetensors");
	struct smalti_safetensors *images = golden_open("extract/vae_256.safetensors");
	struct smalti_features *features = open_features(directory);
	struct smalti_features_row row;
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t rows = 0;
	for (; features && smalti_features_next(features, &row, &error) == 1; rows++) {
		const struct smalti_features_image *image = &row.image;
		const int number = (int)row.index;
		CHECK(same_ids(&row.texts[0], golden_tensor(texts, "ids", number, "")), row.key);
		near(row.texts[0].values, row.texts[0].tokens * WIDTH, golden_tensor(texts, "t5", number, ""),
		     row.key);
		near(image->values, PLANES * image->latent_height * image->latent_width,
		     golden_tensor(images, fit, number, ""), row.key);
	}
	SUCCEEDS(error.code ? -1 : 0, &error, directory);
	CHECK(rows == ITEMS, "every item has a row");
	smalti_features_close(features);
	smalti_safetensors_close(texts);
	smalti_safetensors_close(images);
}

static void features_are_the_references(void)
{
	static const struct {
		enum smalti_fitting fit;
		const char *name;
	} cases[] = {{SMALTI_FITTING_STRETCH, "stretch"}, {SMALTI_FITTING_COVER, "cover"}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		const char *directory = test_scratch();
		struct smalti_extract_options options = small_options(directory);
		options.fit = cases[i].fit;
		const struct smalti_extract_result result = extract(&options, NULL, NULL, cases[i].name);
		CHECK(result.progress.done == ITEMS && result.failures == 0 && !result.stopped,
		      cases[i].name);
		check_golden(directory, cases[i].name);
	}
}

/* All that is in a row, as one number. */
static uint64_t digest(const struct smalti_features_row *row)
{
	uint64_t sum = 1469598103934665603u;
	const struct {
		const void *data;
		int64_t bytes;
	} parts[] = {
	    {row->key, (int64_t)strlen(row->key)},
	    {row->texts[0].ids, row->texts[0].tokens * 4},
	    {row->texts[0].values, row->texts[0].tokens * WIDTH * 4},
	    {row->image.values, PLANES * row->image.latent_height * row->image.latent_width * 4},
	};
	for (size_t p = 0; p < COUNT(parts); p++)
		for (int64_t i = 0; i < parts[p].bytes; i++)
			sum = (sum ^ ((const unsigned char *)parts[p].data)[i]) * 1099511628211u;
	return sum;
}

static void read_digests(const char *directory, uint64_t digests[ITEMS])
{
	struct smalti_features *features = open_features(directory);
	struct smalti_features_row row;
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t next = 0;
	while (features && smalti_features_next(features, &row, &error) == 1) {
		CHECK(row.index == next && next < ITEMS, "rows follow each other");
		if (next < ITEMS)
			digests[next++] = digest(&row);
	}
	SUCCEEDS(error.code ? -1 : 0, &error, directory);
	CHECK(next == ITEMS, "every item has a row");
	smalti_features_close(features);
}

static uint64_t expected[ITEMS];

static void make_expected(void)
{
	const char *directory = test_scratch();
	struct smalti_extract_options options = small_options(directory);
	options.shard_items = 100;
	extract(&options, NULL, NULL, "in one shard");
	read_digests(directory, expected);
}

static void same_rows(const char *directory, const char *what)
{
	uint64_t found[ITEMS] = {0};
	read_digests(directory, found);
	CHECK(memcmp(found, expected, sizeof(found)) == 0, what);
}

/* Uneven parts, more parts than items, shards of one item. */
static void any_cut_gives_the_same_rows(void)
{
	static const int64_t cuts[][2] = {{1, 1}, {3, 4}, {4, 100}, {20, 1}}; /* parts, items of a shard */
	for (size_t i = 0; i < COUNT(cuts); i++) {
		const char *directory = test_scratch();
		char what[64];
		snprintf(what, sizeof(what), "%d parts, shards of %d", (int)cuts[i][0], (int)cuts[i][1]);
		for (int64_t part = 0; part < cuts[i][0]; part++) {
			struct smalti_extract_options options = small_options(directory);
			options.parts = cuts[i][0];
			options.part = part;
			options.shard_items = cuts[i][1];
			extract(&options, NULL, NULL, what);
		}
		same_rows(directory, what);
	}
}

struct stop {
	int64_t after; /* items */
	enum smalti_extract_action action;
};

static enum smalti_extract_action stop_after(void *user, const struct smalti_extract_progress *progress)
{
	const struct stop *stop = user;
	return progress->made >= stop->after && progress->items ? stop->action : SMALTI_EXTRACT_CONTINUE;
}

/* However often it is stopped, nothing is lost, and nothing is made twice. */
static void a_stopped_run_goes_on(void)
{
	static const enum smalti_extract_action wishes[] = {SMALTI_EXTRACT_FINISH, SMALTI_EXTRACT_DROP};
	for (size_t i = 0; i < COUNT(wishes); i++) {
		const char *directory = test_scratch();
		struct smalti_extract_options options = small_options(directory);
		struct stop stop = {.after = 0, .action = wishes[i]};
		struct smalti_extract_result result = {.stopped = true};
		struct smalti_error error = SMALTI_NO_ERROR;
		int64_t made = 0;
		options.shard_items = 2;
		for (int run = 0; run < 40 && result.stopped; run++, stop.after += run % 2) {
			error = (struct smalti_error){0};
			const int status =
			    smalti_extract(session, &options, stop_after, &stop, &result, &error);
			CHECK(status == 0 || error.code == SMALTI_ECANCELLED, error.message);
			made += result.progress.made;
		}
		CHECK(!result.stopped && result.progress.done == ITEMS, "it came to an end");
		CHECK(made >= ITEMS && (wishes[i] == SMALTI_EXTRACT_DROP || made == ITEMS),
		      "nothing was made twice");
		same_rows(directory, "stopped");
	}
}

static void another_runs_directory_is_refused(void)
{
	const char *directory = test_scratch();
	struct smalti_extract_result result;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_extract_options options = small_options(directory);
	options.images = false;
	extract(&options, NULL, NULL, "text alone");
	options.type = SMALTI_FEATURES_BF16;
	int status = smalti_extract(session, &options, NULL, NULL, &result, &error);
	FAILS(status, &error, SMALTI_EINVAL, "another type", "type", "f32", "bf16");
	options.type = SMALTI_FEATURES_F32;
	options.model.precision = SMALTI_PRECISION_BF16;
	error = (struct smalti_error){0};
	status = smalti_extract(session, &options, NULL, NULL, &result, &error);
	FAILS(status, &error, SMALTI_EINVAL, "another precision", "precision", "f32", "bf16");
}

static void wrong_options_are_refused(void)
{
	struct smalti_extract_result result;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_extract_options options = small_options("nowhere/at/all");
	int status = smalti_extract(session, &options, NULL, NULL, &result, &error);
	FAILS(status, &error, SMALTI_ENOENT, "no such place", "nowhere/at/all");
	const char *directory = test_scratch();
	options = small_options(directory);
	options.image_size = 300;
	error = (struct smalti_error){0};
	status = smalti_extract(session, &options, NULL, NULL, &result, &error);
	FAILS(status, &error, SMALTI_EINVAL, "no such bins", "300");
	options = small_options(directory);
	options.text = options.images = false;
	error = (struct smalti_error){0};
	status = smalti_extract(session, &options, NULL, NULL, &result, &error);
	FAILS(status, &error, SMALTI_EINVAL, "nothing to do", "features");
	options = small_options(directory);
	options.model.precision = SMALTI_PRECISION_W8A8;
	error = (struct smalti_error){0};
	status = smalti_extract(session, &options, NULL, NULL, &result, &error);
	FAILS(status, &error, SMALTI_EINVAL, "a precision of images", "f32, bf16, f16, tf32, found w8a8");
	options = small_options(directory);
	options.parts = 3;
	options.part = 3;
	error = (struct smalti_error){0};
	status = smalti_extract(session, &options, NULL, NULL, &result, &error);
	FAILS(status, &error, SMALTI_EINVAL, "part past the last", "3/3");
}

/* Neither what is no number nor what the type of features has not gets into a shard. */
static void features_are_finite(void)
{
	static const struct {
		enum smalti_dtype type;
		float value;
		const char *words; /* NULL: it is kept */
	} cases[] = {
	    {SMALTI_F16, 65504, NULL},
	    {SMALTI_F16, -65520, "the VAE gave -65520, which f16 has not"},
	    {SMALTI_BF16, 65520, NULL},
	    {SMALTI_F32, 65520, NULL},
	    {SMALTI_F32, INFINITY, "the VAE gave 1 values that are not finite, computing in f16"},
	};
	for (int i = 0; i < COUNT(cases); i++) {
		struct smalti_extract_parts parts = {.schema = {.dtype = cases[i].type}};
		const struct smalti_extract_jobs jobs = {.parts = &parts};
		const float values[] = {1, cases[i].value};
		struct smalti_error error = SMALTI_NO_ERROR;
		void *kept = smalti_extract_job_keep(&jobs, 2, values, "VAE", SMALTI_F16, &error);
		CHECK(!kept == (cases[i].words != NULL), "kept or not");
		CHECK(!cases[i].words || strstr(error.message, cases[i].words), error.message);
		free(kept);
	}
}

static const struct test tests[] = {
    {"features are finite", features_are_finite},
    {"features are the reference's", features_are_the_references},
    {"one shard has all rows", make_expected},
    {"any cut gives the same rows", any_cut_gives_the_same_rows},
    {"a stopped run goes on", a_stopped_run_goes_on},
    {"another run's directory is refused", another_runs_directory_is_refused},
    {"wrong options are refused", wrong_options_are_refused},
};

TEST_PROGRAM()
{
	struct smalti_error error = SMALTI_NO_ERROR;
	session = stage_session(NULL, 0);
	const int status = test_main("extract", tests, COUNT(tests));
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
