/* SPDX-License-Identifier: Apache-2.0
 *
 * Reranking: scores are those of their definition, computed value by value; the same bits whatever the
 * workers, the policy and the other queries; what does not fit is refused by name.
 */
#include "embedded.h"
#include "harness.h"
#include "retrieve/rerank.h"
#include "samplers/draws.h"
#include "smalti/extract.h"
#include "stage.h"

#include <math.h>

enum { WIDTH = 128, CHANNELS = 4, QUERIES = 3, TOP = 6, CANDIDATES = 4, TIMESTEPS = 3 };
static const uint64_t seed = 11;

/* Rows whose captions are asked for, and items that were found for each; the last has fewer than asked for.
 */
static const int64_t asked[QUERIES] = {0, 5, 9};
static const int64_t items[QUERIES][TOP] = {
    {3, 0, 8, 12, 1, 2}, {5, 3, 10, 0, 12, 13}, {8, 9, -1, -1, -1, -1}};

static char features_path[PATH_MAX], index_path[PATH_MAX];

static struct smalti_session *open_session(const struct smalti_session_options *options)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session *session = smalti_session_open(options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	return session;
}

static void close_session(struct smalti_session *session)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

/* The features of pictures of several shapes, and an index of their captions; once. */
static void make_index(void)
{
	static char list[PATH_MAX];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_extract_options options;
	struct smalti_extract_result result;
	struct smalti_index_progress progress;
	if (*index_path)
		return;
	snprintf(list, sizeof(list), "%s", test_data("extract/InternData/data_info.json"));
	const char *scratch = test_scratch();
	snprintf(features_path, sizeof(features_path), "%s/features", scratch);
	snprintf(index_path, sizeof(index_path), "%s/index", scratch);
	smalti_extract_defaults(&options);
	options.inputs = (const char *const[]){list};
	options.input_count = 1;
	options.output = features_path;
	options.text = options.images = true;
	options.image_size = 256;
	struct smalti_session *session = open_session(NULL);
	SUCCEEDS(smalti_extract(session, &options, NULL, NULL, &result, &error), &error, "extract");
	close_session(session);
	const struct smalti_index_options index = {.features = features_path, .output = index_path};
	SUCCEEDS(smalti_index_make(&index, &progress, &error), &error, "index");
}

/* One run: queries `first` to `first + count` of the table. */
struct run {
	int64_t first, count;
	struct smalti_features *features; /* of the queries */
	struct smalti_found found[QUERIES * TOP];
	double scores[QUERIES * CANDIDATES];
};

static int states_of(void *user, int64_t number, struct smalti_rerank_query *query,
		     struct smalti_error *error)
{
	const struct run *run = user;
	struct smalti_features_info info;
	struct smalti_features_row row;
	smalti_features_info(run->features, &info);
	if (smalti_features_get(run->features, asked[run->first + number], &row, error) < 0)
		return -1;
	query->states = row.texts[0];
	query->type = info.type;
	return 0;
}

static int rerank(struct run *run, struct smalti_session *session,
		  const struct smalti_rerank_options *options, struct smalti_error *error)
{
	struct smalti_index *index = smalti_index_open(index_path, error);
	run->features = smalti_features_open(features_path, NULL, error);
	for (int64_t i = 0; i < run->count * TOP; i++)
		run->found[i] = (struct smalti_found){items[run->first + i / TOP][i % TOP], (float)-i};
	struct smalti_reranker *reranker =
	    index && run->features ? smalti_reranker_open(index, session, options, error) : NULL;
	const int status = reranker ? smalti_rerank(reranker, run->count, TOP, CANDIDATES, states_of, run,
						    run->found, run->scores, error)
				    : -1;
	smalti_reranker_close(reranker);
	smalti_features_close(run->features);
	smalti_index_close(index);
	return status;
}

static struct smalti_rerank_options some_options(void)
{
	struct smalti_rerank_options options;
	smalti_rerank_defaults(&options);
	options.timesteps = TIMESTEPS;
	options.seed = seed;
	return options;
}

static void rerank_in(const struct smalti_session_options *session_options, struct run *run)
{
	const struct smalti_rerank_options options = some_options();
	struct smalti_error error = SMALTI_NO_ERROR;
	make_index();
	struct smalti_session *session = open_session(session_options);
	SUCCEEDS(rerank(run, session, &options, &error), &error, "rerank");
	close_session(session);
}

/* The mean square of what the model errs by at t, one value after the other. */
static double error_at(struct smalti_model *model, const struct smalti_features_row *row, double factor,
		       int64_t t, const float *text, int64_t tokens)
{
	const int64_t height = row->image.latent_height, width = row->image.latent_width;
	const int64_t count = CHANNELS * height * width;
	float *noise = smalti_calloc(4 * count, sizeof(*noise), NULL), *xt = noise + count, *out = xt + count;
	struct smalti_generator generator;
	struct smalti_error error = SMALTI_NO_ERROR;
	double alpha_bar = 1, sum = 0;
	for (int64_t i = 0; i <= t; i++)
		alpha_bar *= 1 - (1e-4 + (double)i * (0.02 - 1e-4) / 999);
	smalti_generator_seed(&generator, smalti_stream_seed(seed, SMALTI_STREAM_RERANKING, (uint64_t)t, 0));
	smalti_randn(&generator, SMALTI_F32, count, noise);
	smalti_widen(SMALTI_F16, row->image.values, count, xt);
	for (int64_t i = 0; i < count; i++)
		xt[i] = (float)(sqrt(alpha_bar) * factor * (double)xt[i] +
				sqrt(1 - alpha_bar) * (double)noise[i]);
	SUCCEEDS(stage_dit(model->session, model->denoiser, xt, height, width, (float)t, text, tokens, 1000,
			   smalti_model_factor(model), out, &error),
		 &error, "forward");
	for (int64_t i = 0; i < count; i++)
		sum += pow((double)out[i] - (double)noise[i], 2) / (double)count;
	free(noise);
	return sum;
}

static double score_of(struct smalti_model *model, struct smalti_features *features, int64_t item,
		       const float *text, int64_t tokens, const float *empty)
{
	static const int64_t timesteps[TIMESTEPS] = {166, 500, 833};
	struct smalti_features_info info;
	struct smalti_features_row row;
	struct smalti_error error = SMALTI_NO_ERROR;
	double sum = 0;
	smalti_features_info(features, &info);
	SUCCEEDS(smalti_features_get(features, item, &row, &error), &error, "row");
	for (int i = 0; i < TIMESTEPS; i++)
		sum += (error_at(model, &row, info.scaling_factor, timesteps[i], empty, 1) -
			error_at(model, &row, info.scaling_factor, timesteps[i], text, tokens)) /
		       TIMESTEPS;
	return sum;
}

static int64_t states_in(struct smalti_features *features, int64_t item, float *text, int64_t max)
{
	struct smalti_features_row row;
	struct smalti_error error = SMALTI_NO_ERROR;
	SUCCEEDS(smalti_features_get(features, item, &row, &error), &error, "row");
	CHECK(row.texts[0].tokens <= max, "room");
	smalti_widen(SMALTI_F16, row.texts[0].values, row.texts[0].tokens * WIDTH, text);
	return row.texts[0].tokens;
}

/* That the items are those that were given, in the order of their scores; `found` and `scores` of a query. */
static void check_order(int query, const struct smalti_found *found, const double *scores)
{
	int64_t count = 0;
	while (count < CANDIDATES && items[query][count] >= 0)
		count++;
	for (int64_t i = 0; i < TOP; i++) {
		int64_t given = -1;
		for (int64_t j = 0; j < TOP; j++)
			if (items[query][j] == found[i].number && (i >= count ? j == i : j < count))
				given = j;
		CHECK(given >= 0, "an item of the candidates, or where it was");
		CHECK(i >= count || (double)found[i].score == (double)-(query * TOP + given),
		      "with its first score");
	}
	for (int64_t i = 1; i < count; i++)
		CHECK(scores[i - 1] > scores[i], "in order");
	for (int64_t i = count; i < CANDIDATES; i++)
		CHECK(isnan(scores[i]), "no score");
}

static void defined(void)
{
	enum { MOST = 300 };
	static float text[MOST * WIDTH], empty[WIDTH];
	static struct run run = {.count = QUERIES};
	struct smalti_error error = SMALTI_NO_ERROR;
	double min = INFINITY, largest = -INFINITY;
	rerank_in(&(struct smalti_session_options){.cpus = 2}, &run);
	struct smalti_session *session = open_session(&(struct smalti_session_options){.cpus = 2});
	struct smalti_model *model = embedded_open(session);
	struct smalti_features *features = smalti_features_open(features_path, NULL, &error);
	SUCCEEDS(stage_t5(session, model->text.model, (const int32_t[]){1}, 1, empty, &error), &error,
		 "the empty caption");
	for (int query = 0; query < QUERIES; query++) {
		const struct smalti_found *found = run.found + query * TOP;
		const double *scores = run.scores + query * CANDIDATES;
		const int64_t tokens = states_in(features, asked[query], text, MOST);
		check_order(query, found, scores);
		for (int64_t i = 0; i < CANDIDATES && found[i].number >= 0; i++) {
			const double naive = score_of(model, features, found[i].number, text, tokens, empty);
			CHECK(fabs(scores[i] - naive) < 2e-6, "the score");
			min = fmin(min, naive);
			largest = fmax(largest, naive);
		}
	}
	CHECK(largest - min > 1e-4, "scores that differ");
	smalti_features_close(features);
	embedded_close(session, model);
}

static void same_bits(void)
{
	static const struct smalti_session_options sessions[] = {
	    {.cpus = 1}, {.cpus = 2, .policy = "eager"}, {.cpus = 2, .policy = "dmda"}};
	static struct run first = {.count = QUERIES}, run;
	rerank_in(&sessions[0], &first);
	for (int i = 1; i < COUNT(sessions); i++) {
		run = (struct run){.count = QUERIES};
		rerank_in(&sessions[i], &run);
		CHECK(memcmp(run.scores, first.scores, sizeof(run.scores)) == 0, sessions[i].policy);
	}
	for (int i = 0; i < QUERIES; i++) {
		run = (struct run){.first = i, .count = 1};
		rerank_in(&sessions[1], &run);
		CHECK(memcmp(run.scores, first.scores + (ptrdiff_t)i * CANDIDATES,
			     CANDIDATES * sizeof(*run.scores)) == 0,
		      "alone");
	}
}

static bool stop(void *user, int64_t done, int64_t total)
{
	(void)user;
	CHECK(done >= 0 && done <= total, "progress");
	return false;
}

static void refused(void)
{
	static struct run run = {.count = QUERIES};
	struct smalti_rerank_options options = some_options();
	struct smalti_error error = SMALTI_NO_ERROR;
	make_index();
	struct smalti_session *session = open_session(&(struct smalti_session_options){.cpus = 1});
	options.timesteps = 0;
	FAILS(rerank(&run, session, &options, &error), &error, SMALTI_EINVAL, "no timesteps",
	      "number of timesteps");
	options = some_options();
	options.features = "/nowhere";
	error = (struct smalti_error)SMALTI_NO_ERROR;
	CHECK(rerank(&run, session, &options, &error) < 0 && strstr(error.message, "/nowhere"),
	      "no features");
	options = some_options();
	options.on_progress = stop;
	error = (struct smalti_error)SMALTI_NO_ERROR;
	FAILS(rerank(&run, session, &options, &error), &error, SMALTI_ECANCELLED, "stopped", NULL);
	close_session(session);
}

static const struct test tests[] = {
    {"scores as defined", defined},
    {"the same bits whatever the workers and the other queries", same_bits},
    {"refused", refused},
};
TEST_MAIN("rerank", tests)
