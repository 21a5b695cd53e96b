/* SPDX-License-Identifier: Apache-2.0
 *
 * What stands for a dropped caption: the hidden states of the empty text, its own or padded, and what a step
 * reads of them.
 */
#include "codelets/codelets.h"
#include "golden.h"
#include "golden_features.h"
#include "harness.h"
#include "jobs/prompt_encoder.h"
#include "stage.h"
#include "train/initial.h"
#include "train/null_caption.h"

#include <xxhash.h>

enum { PADDED = 40, STEPS = 3, BATCH = 3, WIDTH_MAX = 64, TOKENS_MAX = 300 };

static struct smalti_session *session;

/* The embedded model's encoder, as null_caption.c opens it; `all` [PADDED, width] by T5 of the whole padded
 * text. */
static void encode_whole(const struct smalti_model_options *model, char digest[SMALTI_DIGEST_LENGTH + 1],
			 float **all, int64_t *width)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_task_group *task_group = smalti_task_group_new(session, "encoder", 0, &error);
	struct smalti_prompt_encoder encoder = {0};
	char *directory = NULL;
	int32_t ids[PADDED] = {1};
	const struct smalti_token_ids words = {.ids = ids, .count = PADDED, .padding = PADDED - 1};
	SUCCEEDS(smalti_prompt_encoder_open_of(&encoder, task_group, model, &directory, digest, &error),
		 &error, "encoder");
	*width = encoder.model->width;
	*all = calloc((size_t)(PADDED * *width), sizeof(**all));
	SUCCEEDS(stage_t5_together(session, encoder.model, &words, 1, &smalti_strategy_none, all, &error),
		 &error, "the padded text");
	smalti_prompt_encoder_close(&encoder);
	smalti_task_group_free(task_group);
	free(directory);
}

static void it_is_that_of_the_text_encoder(void)
{
	const struct smalti_model_options model = {.directory = test_model("tesserae")};
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_null_caption own = {0}, padded = {0};
	char digest[SMALTI_DIGEST_LENGTH + 1];
	float *all = NULL;
	int64_t width = 0;
	encode_whole(&model, digest, &all, &width);
	const size_t row = (size_t)width * sizeof(*all);
	SUCCEEDS(smalti_null_caption_encode(session, &model, digest, 0, &own, &error), &error, "own");
	CHECK(own.tokens == 1 && own.width == width, "the empty text has one token");
	CHECK(memcmp(own.values, all, row) == 0, "its hidden states");
	SUCCEEDS(smalti_null_caption_encode(session, &model, digest, PADDED, &padded, &error), &error,
		 "padded");
	CHECK(padded.tokens == PADDED && padded.width == width, "a row for each token");
	CHECK(memcmp(padded.values, all, PADDED * row) == 0, "their hidden states");
	CHECK(memcmp(all, all + width, row) != 0, "padding has others than the end mark");
	FAILS(smalti_null_caption_encode(session, &model, "another", 0, &own, &error), &error, SMALTI_EINVAL,
	      "another encoder", "the text encoder another");
	free(own.values);
	free(padded.values);
	free(all);
}

/* Steps whose captions are all dropped. */
struct run {
	struct smalti_train_options options;
	struct smalti_trainer trainer;
	struct smalti_training_data *data;
	struct smalti_training_sample samples[BATCH];
};

static void no_damage(void *user, const char *message)
{
	(void)user;
	CHECK(false, message);
}

static void open_run(struct run *run, const char *const *directories, enum smalti_null_tokens null_tokens,
		     const struct smalti_transformer_config *config,
		     const struct smalti_null_caption *null_caption)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	run->options = (struct smalti_train_options){
	    .data = {.directories = directories, .directory_count = 1, .drop = 1, .null_tokens = null_tokens},
	    .steps = STEPS,
	    .batch = BATCH,
	    .lanes = 2,
	    .optimizer = {.rate = 1e-2, .betas = {0.9, 0.999}, .epsilons = {1e-10}, .clip = 1}};
	run->data = smalti_training_data_open(&run->options, no_damage, NULL, &error);
	SUCCEEDS(run->data ? 0 : -1, &error, "data");
	SUCCEEDS(smalti_trainer_open(&run->trainer, session, &run->options, config, &error), &error,
		 "trainer");
	smalti_trainer_set_data(&run->trainer, smalti_training_data_schema(run->data), null_caption);
	smalti_initial_values(run->trainer.parameters, run->trainer.task_group, 1);
	SUCCEEDS(smalti_trainer_begin(&run->trainer, &error), &error, "begin");
}

static int add_to_digest(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	uint64_t *digest = user;
	(void)error;
	*digest = XXH3_64bits_withSeed(values, (size_t)count * sizeof(*values), *digest);
	return 0;
}

static uint64_t close_run(struct run *run)
{
	uint64_t digest = 0;
	for (int64_t i = 0; i < run->trainer.parameters->count; i++) {
		const struct smalti_parameter *p = &run->trainer.parameters->list[i];
		smalti_insert(deliver, run->trainer.task_group, (.x = p->value), .count = p->count,
			      .sink = add_to_digest, .user = &digest);
		smalti_task_group_wait(run->trainer.task_group);
	}
	smalti_trainer_close(&run->trainer);
	smalti_training_data_close(run->data);
	return digest;
}

/* The bits of the parameters after some steps. Where `stored`, the samples come with captions that are not
 * dropped, but are those rows. */
static uint64_t digest_of(const char *const *directories, enum smalti_null_tokens null_tokens,
			  const struct smalti_transformer_config *config,
			  const struct smalti_null_caption *null_caption, const uint16_t *stored)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_step_result result;
	static struct run run;
	open_run(&run, directories, null_tokens, config, null_caption);
	for (int step = 0; step < STEPS; step++) {
		SUCCEEDS(smalti_training_data_next(run.data, run.samples, &error), &error, "batch");
		for (int i = 0; i < BATCH; i++) {
			struct smalti_training_sample *sample = &run.samples[i];
			CHECK(sample->dropped && !sample->caption, "dropped");
			if (!stored)
				continue;
			sample->dropped = false;
			sample->caption = stored;
			if (null_tokens == SMALTI_NULL_TOKENS_OWN)
				sample->tokens = 1;
		}
		SUCCEEDS(smalti_trainer_step(&run.trainer, run.samples, &result, &error), &error, "step");
	}
	return close_run(&run);
}

static void a_step_reads_as_many_rows_as_the_caption_has(void)
{
	static float values[TOKENS_MAX * WIDTH_MAX];
	static uint16_t narrow[TOKENS_MAX * WIDTH_MAX];
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_transformer_config config;
	char directory[512];
	const char *const directories[] = {directory};
	struct smalti_safetensors *file = golden_open("train/steps.safetensors");
	cJSON *json = smalti_json_read(test_data("train/steps.json"), 1 << 24, NULL);
	const struct golden_features features = {
	    .file = file, .kind = "item", .scaling_factor = 0.5, .text_model = "text"};
	snprintf(directory, sizeof(directory), "%s/features", test_scratch());
	SUCCEEDS(make_golden_features(directory, &features, &error), &error, "features");
	SUCCEEDS(smalti_transformer_config_parse(cJSON_GetObjectItem(json, "config"), &config, &error),
		 &error, "config");
	const int64_t width = config.caption_channels, count = TOKENS_MAX * width;
	CHECK(width <= WIDTH_MAX, "room");
	test_fill(values, count, 0.37, 1);
	smalti_narrow(SMALTI_F16, values, count, narrow);
	smalti_widen(SMALTI_F16, narrow, count, values);
	uint64_t digests[2][2];
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++) {
			const struct smalti_null_caption null_caption = {values, i ? TOKENS_MAX : 1, width};
			digests[i][k] =
			    digest_of(directories, i ? SMALTI_NULL_TOKENS_CAPTION : SMALTI_NULL_TOKENS_OWN,
				      &config, &null_caption, k ? narrow : NULL);
		}
	CHECK(digests[0][0] == digests[0][1], "own: one row");
	CHECK(digests[1][0] == digests[1][1], "caption: its number of rows");
	CHECK(digests[0][0] != digests[1][0], "the two differ");
	cJSON_Delete(json);
	smalti_safetensors_close(file);
}

static const struct test tests[] = {
    {"it is that of the text encoder", it_is_that_of_the_text_encoder},
    {"a step reads as many rows as the caption has", a_step_reads_as_many_rows_as_the_caption_has},
};

TEST_PROGRAM()
{
	struct smalti_error error = SMALTI_NO_ERROR;
	session = stage_session(NULL, 2);
	const int status = test_main("null caption", tests, COUNT(tests));
	return smalti_session_close(session, &error) < 0 ? 1 : status;
}
