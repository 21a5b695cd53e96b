/* SPDX-License-Identifier: Apache-2.0
 *
 * Every single allocation fails in turn, from the opening of a model to the last row of an image: the caller
 * is told so, and nothing crashes or is left behind (the sanitizers say). */
#include "codelets/codelets.h"
#include "embedded.h"
#include "graphs/denoising_count.h"
#include "graphs/parameters.h"
#include "graphs/pixart/train.h"
#include "harness.h"
#include "jobs/model.h"
#include "rt/session.h"
#include "smalti/generate.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

/* The linker puts these in front of base/base.h (--wrap). */

static atomic_int calls, failing; /* which call is to fail; 0: none */

static bool refuse(struct smalti_error *error)
{
	if (atomic_fetch_add(&calls, 1) + 1 != atomic_load(&failing))
		return false;
	smalti_fail(error, SMALTI_ENOMEM, "this allocation was to fail");
	return true;
}

void *__real_smalti_calloc(int64_t count, int64_t size, struct smalti_error *error);
void *__wrap_smalti_calloc(int64_t count, int64_t size, struct smalti_error *error);
void *__real_smalti_aligned_alloc(int64_t count, int64_t size, struct smalti_error *error);
void *__wrap_smalti_aligned_alloc(int64_t count, int64_t size, struct smalti_error *error);

void *__wrap_smalti_calloc(int64_t count, int64_t size, struct smalti_error *error)
{
	return refuse(error) ? NULL : __real_smalti_calloc(count, size, error);
}

void *__wrap_smalti_aligned_alloc(int64_t count, int64_t size, struct smalti_error *error)
{
	return refuse(error) ? NULL : __real_smalti_aligned_alloc(count, size, error);
}

enum { SIDE = 32 };

struct outcome {
	int done, status;
	int64_t rows;
	struct smalti_error error;
};

static int keep_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		     struct smalti_error *error)
{
	(void)first, (void)rgb, (void)error;
	struct outcome *outcome = user;
	outcome->rows += count;
	return 0;
}

static void keep_status(void *user, int status, const struct smalti_error *error)
{
	struct outcome *outcome = user;
	outcome->done++;
	outcome->status = status;
	if (status)
		outcome->error = *error;
}

static const char *step_cache; /* of the image; NULL: none */

/* A guided image of two steps in several bands; 0 or -1 with the outcome's error. */
static int make_image(struct smalti_model *model, struct outcome *outcome)
{
	const struct smalti_image_callbacks callbacks = {
	    .user = outcome, .rows = keep_rows, .done = keep_status};
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.prompt = "a red star";
	request.width = request.height = SIDE;
	request.steps = 2;
	request.tile_tokens = 3;
	request.tile_rows = 3;
	request.step_cache = step_cache;
	request.step_cache_checks = step_cache;
	struct smalti_batch *batch = smalti_batch_open(model, &outcome->error);
	if (!batch)
		return -1;
	int status = embedded_submit(model, batch, &request, 0, &callbacks, &outcome->error);
	smalti_batch_close(batch);
	CHECK(outcome->done == (status == 0), "told once, unless refused");
	return status || outcome->status ? -1 : 0;
}

static int run(struct smalti_session *session, struct outcome *outcome)
{
	struct smalti_model_options options;
	smalti_model_defaults(&options);
	options.directory = test_model("tesserae");
	*outcome = (struct outcome){0};
	struct smalti_model *model = smalti_model_open(session, &options, &outcome->error);
	int status = model ? make_image(model, outcome) : -1;
	smalti_model_close(model);
	return status;
}

static void in_turn(struct smalti_session *session, int number, int *failures)
{
	struct outcome outcome;
	char what[SMALTI_ERROR_LENGTH + 64];
	atomic_store(&calls, 0);
	atomic_store(&failing, number);
	int status = run(session, &outcome);
	snprintf(what, sizeof(what), "allocation %d: status %d, %lld rows, %s", number, status,
		 (long long)outcome.rows, outcome.error.message);
	if (status == 0) /* that one was not needed */
		CHECK(outcome.rows == SIDE, what);
	else
		CHECK(outcome.error.code == SMALTI_ENOMEM, what);
	*failures += status != 0;
}

/* Fails each of the first allocations, which open the model, then `share` of those of the many tasks. */
static void fail_allocations(int each, int share)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_session_options options;
	struct outcome outcome;
	smalti_session_defaults(&options);
	options.cpus = 2;
	struct smalti_session *session = smalti_session_open(&options, &error);
	SUCCEEDS(session ? 0 : -1, &error, "session");
	atomic_store(&failing, 0);
	for (int i = 0; i < 2; i++) { /* the second time without what is made once per process */
		atomic_store(&calls, 0);
		SUCCEEDS(run(session, &outcome), &outcome.error, "without a failure");
	}
	const int count = atomic_load(&calls), stride = count / share + 1;
	int runs = 0, failures = 0;
	for (int number = 1; number <= count; number += number < each ? 1 : stride, runs++)
		in_turn(session, number, &failures);
	CHECK(failures > runs / 2, "most failures are noticed");
	printf("\n    %d of %d allocations, %d failures", runs, count, failures);
	atomic_store(&failing, 0);
	SUCCEEDS(run(session, &outcome), &outcome.error, "afterwards");
	SUCCEEDS(smalti_session_close(session, &error), &error, "close");
}

static void every_allocation_of_an_image(void)
{
	fail_allocations(150, 250);
}

/* The second step is skipped, and computed to check it. */
static void allocations_of_a_step_cache(void)
{
	step_cache = "first-block:9";
	fail_allocations(0, 150);
	step_cache = NULL;
}

/* The loads of a strategy, as one of four places would bear them. */
static int count_loads(const struct smalti_model *model, const struct smalti_strategy *strategy,
		       struct smalti_error *error)
{
	struct smalti_load loads[4];
	const struct smalti_denoising denoising = {.denoiser = model->denoiser,
						   .tokens = 64,
						   .columns = 8,
						   .band_tokens = 16,
						   .prompt_tokens = {1, 5},
						   .branches = 2};
	return smalti_denoising_loads(&denoising, strategy, true, COUNT(loads), loads, error);
}

static void every_allocation_of_a_count(void)
{
	static const char *const names[] = {"patch2", "tensor2", "pipeline2", "displaced2"};
	enum { SHARE = 150 };
	struct smalti_error error = SMALTI_NO_ERROR;
	atomic_store(&failing, 0);
	struct smalti_session *session = smalti_session_open(NULL, &error);
	struct smalti_model *model = embedded_open(session);
	for (int i = 0; i < COUNT(names); i++) {
		struct smalti_strategy strategy;
		SUCCEEDS(smalti_strategy_read(&strategy, names[i], NULL, 4, &error), &error, names[i]);
		atomic_store(&calls, 0);
		SUCCEEDS(count_loads(model, &strategy, &error), &error, names[i]);
		const int count = atomic_load(&calls);
		for (int number = 1; number <= count; number += number < SHARE ? 1 : count / SHARE + 1) {
			atomic_store(&calls, 0);
			atomic_store(&failing, number);
			FAILS(count_loads(model, &strategy, &error), &error, SMALTI_ENOMEM, names[i],
			      "this allocation was to fail");
			atomic_store(&failing, 0);
			error = (struct smalti_error)SMALTI_NO_ERROR;
		}
		smalti_strategy_free(&strategy);
	}
	embedded_close(session, model);
}

/* A transformer of two blocks, the first of which is computed again. */
static const struct smalti_transformer_config small = {.layers = 2,
						       .heads = 2,
						       .head_dim = 12,
						       .width = 24,
						       .in_channels = 4,
						       .out_channels = 8,
						       .patch_size = 2,
						       .sample_size = 128,
						       .caption_channels = 16,
						       .interpolation_scale = 1,
						       .norm_eps = 1e-6,
						       .attention_bias = true,
						       .additional_conditions = true};
enum { LATENT = 8, CAPTION = 3, PARAMETERS = 128 };

static struct smalti_tile *cleared(struct smalti_task_group *task_group, struct smalti_tile *tile,
				   int64_t floats)
{
	if (!tile)
		tile = smalti_tile_new(task_group, 1, floats * (int64_t)sizeof(float));
	smalti_insert(clear, task_group, (.y = tile), .bytes = floats * (int64_t)sizeof(float));
	return tile;
}

static void insert_gradients(struct smalti_task_group *task_group, struct smalti_trained *trained,
			     const struct smalti_parameters *parameters, const struct smalti_tokens *tokens)
{
	struct smalti_tile *gradients[PARAMETERS], *out = NULL, *const *const sets[] = {gradients};
	struct smalti_tile *gx = smalti_tile_new(task_group, 1, 4 * LATENT * LATENT * (int64_t)sizeof(float));
	struct smalti_tile *gout = cleared(task_group, NULL, 8 * LATENT * LATENT);
	const struct smalti_trained_sample sample = {.x = cleared(task_group, NULL, 4 * LATENT * LATENT),
						     .gx = gx,
						     .height = LATENT,
						     .width = LATENT,
						     .tokens = tokens,
						     .text = cleared(task_group, NULL, 16 * CAPTION),
						     .text_tokens = CAPTION,
						     .sides = {64, 64},
						     .ratio = 1,
						     .recomputed = 1,
						     .bounded = true};
	for (int64_t i = 0; i < parameters->count; i++) {
		cleared(task_group, parameters->list[i].value, parameters->list[i].count);
		gradients[i] = smalti_parameter_tile(&parameters->list[i], task_group);
	}
	smalti_trained_begin_step(trained, task_group);
	struct smalti_trained_pass *pass = smalti_trained_forward(trained, task_group, &sample, &out);
	if (pass)
		smalti_trained_backward(pass, gout, sets, false);
	smalti_trained_end_step(trained);
	for (int64_t i = 0; i < parameters->count; i++)
		smalti_tile_release(gradients[i]);
	struct smalti_tile *const mine[] = {out, gx, gout, sample.x, sample.text};
	for (size_t i = 0; i < COUNT_OF(mine); i++)
		smalti_tile_release(mine[i]);
}

static int take_gradients(struct smalti_session *session, struct smalti_error *error)
{
	struct smalti_tokens tokens = {.rows = 0};
	struct smalti_trained *trained = NULL;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "gradients", 0, error);
	struct smalti_parameters *parameters =
	    task_group
		? smalti_parameters_new(task_group, &smalti_dit_trained, &small, &smalti_strategy_none, error)
		: NULL;
	int status = -1;
	if (parameters && (trained = smalti_trained_new(&small, parameters, SMALTI_BF16, error)) &&
	    (status = smalti_tokens_cut(&tokens, &smalti_strategy_none, LATENT * LATENT / 4, LATENT / 2, 6,
					error)) == 0) {
		insert_gradients(task_group, trained, parameters, &tokens);
		smalti_task_group_wait(task_group);
		status = smalti_task_group_status(task_group, error);
	}
	smalti_trained_free(trained);
	smalti_parameters_free(parameters);
	smalti_tokens_free(&tokens);
	smalti_task_group_free(task_group);
	return status;
}

static void every_allocation_of_gradients(void)
{
	enum { SHARE = 400 };
	struct smalti_error error = SMALTI_NO_ERROR;
	atomic_store(&failing, 0);
	struct smalti_session *session = smalti_session_open_sequential(&error);
	for (int i = 0; i < 2; i++) {
		atomic_store(&calls, 0);
		SUCCEEDS(take_gradients(session, &error), &error, "without a failure");
	}
	const int count = atomic_load(&calls);
	int failures = 0;
	for (int number = 1; number <= count; number += count / SHARE + 1) {
		atomic_store(&calls, 0);
		atomic_store(&failing, number);
		const int status = take_gradients(session, &error);
		CHECK(status == 0 || error.code == SMALTI_ENOMEM, error.message);
		failures += status != 0;
		error = (struct smalti_error)SMALTI_NO_ERROR;
	}
	atomic_store(&failing, 0);
	printf("\n    %d allocations, %d failures", count, failures);
	CHECK(failures > SHARE / 4, "most failures are noticed");
	SUCCEEDS(take_gradients(session, &error), &error, "afterwards");
	smalti_session_close(session, NULL);
}

static const struct test tests[] = {{"every allocation of an image", every_allocation_of_an_image},
				    {"allocations of a step cache", allocations_of_a_step_cache},
				    {"every allocation of a count", every_allocation_of_a_count},
				    {"every allocation of gradients", every_allocation_of_gradients}};

TEST_MAIN("allocations", tests)
