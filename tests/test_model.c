/* SPDX-License-Identifier: Apache-2.0
 *
 * What a model opens at once, and what only when somebody asks for it. */
#include "base/file.h"
#include "graphs/denoising_count.h"
#include "harness.h"
#include "jobs/model.h"
#include "stage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct smalti_session *session;

static struct smalti_model *open_model(const char *vae)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_model_options options;
	smalti_model_defaults(&options);
	options.directory = test_model("tesserae");
	options.vae = vae;
	struct smalti_model *model = smalti_model_open(session, &options, &error);
	SUCCEEDS(model ? 0 : -1, &error, "open");
	return model;
}

/* A directory with the embedded model's VAE, but without the tensors of its encoder. */
static void write_decoder(const char *directory)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	char path[512];
	struct smalti_checkpoint *whole =
	    smalti_checkpoint_open(test_model("tesserae/vae"), SMALTI_STEM_DIFFUSERS, NULL, &error);
	SUCCEEDS(whole ? 0 : -1, &error, "embedded VAE");
	struct smalti_tensor_view *kept = calloc((size_t)whole->count, sizeof(struct smalti_tensor_view));
	if (!kept)
		abort();
	int64_t count = 0;
	for (int64_t i = 0; i < whole->count; i++) {
		const struct smalti_tensor_view *view = &whole->entries[i].view;
		if (strncmp(view->name, "encoder.", 8) != 0)
			kept[count++] = *view;
	}
	snprintf(path, sizeof(path), "%s/%s.safetensors", directory, SMALTI_STEM_DIFFUSERS);
	SUCCEEDS(smalti_safetensors_write(path, kept, count, &error), &error, "write");
	free(kept);
	smalti_checkpoint_close(whole);
	snprintf(path, sizeof(path), "cp '%s' '%s'", test_model("tesserae/vae/config.json"), directory);
	CHECK(system(path) == 0, path);
}

static void no_encoder(void)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	const char *directory = test_scratch();
	write_decoder(directory);
	struct smalti_model *model = open_model(directory);
	const int status = stage_encoder(model, &error) ? 0 : -1;
	FAILS(status, &error, SMALTI_EFORMAT, "encoder", directory, "encoder.");
	smalti_model_close(model);
}

/* The arithmetic that is estimated, against what the inserted tasks say of themselves. */

static void near(struct smalti_task_group *task_group, double estimated, const char *what)
{
	struct smalti_task_group_progress progress;
	char text[96];
	smalti_task_group_wait(task_group);
	smalti_task_group_progress(task_group, &progress);
	snprintf(text, sizeof(text), "%s: %g estimated, %g inserted", what, estimated, progress.inserted);
	CHECK(estimated > 0.97 * progress.inserted && estimated <= 1.001 * progress.inserted, text);
}

static int ignore_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
		       struct smalti_error *error)
{
	(void)user, (void)first, (void)rows, (void)width, (void)pixels, (void)error;
	return 0;
}

static void estimate_decoding(const struct smalti_model *model, int64_t height, int64_t width)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "decoding", 0, &error);
	struct smalti_tile *latents = smalti_tile_new(task_group, 4 * height * width, sizeof(float));
	smalti_insert(clear, task_group, (.y = latents), .bytes = 16 * height * width);
	stage_insert_decoding(model->vae, task_group, latents, height, width, 3, ignore_rows, NULL);
	smalti_tile_release(latents);
	near(task_group, smalti_vae_net_flops(model->vae, (double)(height * width)), "decoding");
	smalti_task_group_free(task_group);
}

static struct smalti_cross_cache *caption_of(const struct smalti_model *model,
					     struct smalti_task_group *task_group, int64_t tokens)
{
	const int64_t row = model->denoiser->text_width * (int64_t)sizeof(float);
	struct smalti_tile *text = smalti_tile_new(task_group, tokens, row);
	smalti_insert(clear, task_group, (.y = text), .bytes = tokens * row);
	struct smalti_cross_cache *caption =
	    model->denoiser->functions->cross_cache(model->denoiser, task_group, text, tokens);
	smalti_tile_release(text);
	return caption;
}

static void estimate_forward(const struct smalti_model *model, int64_t height, int64_t width, int captions)
{
	static const int64_t tokens[2] = {1, 60};
	static const float timestep = 500;
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *made = smalti_task_group_new(session, "conditions", 0, &error);
	struct smalti_task_group *task_group = smalti_task_group_new(session, "forward", 0, &error);
	struct smalti_tokens cut;
	const int64_t n = height / 2 * (width / 2), row = 16 * (int64_t)sizeof(float);
	const struct smalti_denoising denoising = {.denoiser = model->denoiser,
						   .tokens = n,
						   .columns = width / 2,
						   .band_tokens = n,
						   .prompt_tokens = {tokens[0], tokens[1]},
						   .branches = captions};
	struct smalti_load load;
	SUCCEEDS(smalti_tokens_cut(&cut, &smalti_strategy_none, n, width / 2, 50, &error), &error, "cut");
	SUCCEEDS(smalti_denoising_loads(&denoising, &smalti_strategy_none, false, 1, &load, &error), &error,
		 "loads");
	struct smalti_conditions *conditions = model->denoiser->functions->conditions(
	    model->denoiser, made, &cut, &timestep, 1, height, width, 8);
	struct smalti_cross_cache *caption[2] = {caption_of(model, made, tokens[0]),
						 caption_of(model, made, tokens[1])};
	struct smalti_grid x = smalti_grid_new(task_group, &cut.partition, 1, row), v[2];
	for (int64_t b = 0; b < cut.partition.bands; b++)
		smalti_insert(clear, task_group, (.y = smalti_grid_tile(&x, b)),
			      .bytes = smalti_partition_rows(&cut.partition, b) * row);
	model->denoiser->functions->forward(model->denoiser, task_group, conditions, 0, 1, &x, caption,
					    captions, NULL, v);
	near(task_group, load.flops, "forward");
	smalti_grid_release(&x);
	for (int k = 0; k < captions; k++)
		smalti_grid_release(&v[k]);
	for (int k = 0; k < 2; k++)
		model->denoiser->functions->release_cross_cache(caption[k]);
	model->denoiser->functions->release_conditions(conditions);
	smalti_task_group_free(task_group);
	smalti_task_group_free(made);
	smalti_tokens_free(&cut);
}

static void foresight(void)
{
	struct smalti_model *model = open_model(NULL);
	estimate_decoding(model, 1, 1);
	estimate_decoding(model, 7, 12);
	estimate_forward(model, 6, 10, 1);
	estimate_forward(model, 26, 14, 2);
	smalti_model_close(model);
}

static bool same_states(const struct smalti_text_states *a, const struct smalti_text_states *b)
{
	return a->tokens == b->tokens && a->width == b->width &&
	       memcmp(a->ids, b->ids, (size_t)a->tokens * sizeof(*a->ids)) == 0 &&
	       memcmp(a->values, b->values, (size_t)(a->tokens * a->width) * sizeof(*a->values)) == 0;
}

/* More than are encoded together, and no multiple of it. */
static void text_states(void)
{
	static const char *const texts[] = {"a red star", "", "A RED STAR ", "a blue ring above a red star",
					    "a red star"};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_model *model = open_model(NULL);
	struct smalti_text_states all[COUNT(texts)];
	SUCCEEDS(smalti_text_encode(model, texts, COUNT(texts), SMALTI_CLEANING_BASIC, all, &error), &error,
		 "all");
	CHECK(same_states(&all[0], &all[2]) && same_states(&all[0], &all[4]), "equal texts");
	CHECK(all[0].tokens > 3 && all[1].tokens == 1 && all[3].tokens > all[0].tokens, "tokens");
	CHECK(all[0].ids[all[0].tokens - 1] == all[1].ids[0], "end mark");
	for (int i = 0; i < COUNT(texts); i++) {
		struct smalti_text_states alone;
		SUCCEEDS(smalti_text_encode(model, &texts[i], 1, SMALTI_CLEANING_BASIC, &alone, &error),
			 &error, texts[i]);
		CHECK(same_states(&all[i], &alone), texts[i]);
		CHECK(i == 0 || memcmp(alone.values, all[i - 1].values, sizeof(float)) != 0,
		      "one as another");
		smalti_text_states_free(&alone);
		CHECK(!alone.values && !alone.tokens, "freed");
	}
	for (int i = 0; i < COUNT(texts); i++)
		smalti_text_states_free(&all[i]);
	const char *const absent[] = {"a red star", NULL};
	FAILS(smalti_text_encode(model, absent, 2, SMALTI_CLEANING_BASIC, all, &error), &error, SMALTI_EINVAL,
	      "no text", "text");
	CHECK(!all[0].values && !all[0].ids, "nothing is left");
	FAILS(smalti_text_encode(model, texts, 1, (enum smalti_cleaning)9, all, &error), &error,
	      SMALTI_EINVAL, "cleaning", "cleaning");
	smalti_model_close(model);
}

static const struct test tests[] = {
    {"arithmetic is estimated", foresight},
    {"a model without an encoder", no_encoder},
    {"states of texts", text_states},
};

TEST_PROGRAM()
{
	session = stage_session(NULL, 0);
	int status = test_main("models", tests, COUNT(tests));
	struct smalti_error error = SMALTI_NO_ERROR;
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
