/* SPDX-License-Identifier: Apache-2.0 */
#include "train/sample_images.h"
#include "base/file.h"
#include "jobs/batch.h"
#include "jobs/follow.h"
#include "jobs/image_file.h"
#include "jobs/plan.h"
#include "jobs/precision.h"

struct smalti_sample_images {
	const struct smalti_trainer *trainer;
	struct smalti_text_states *states; /* of the prompts, then of the empty text */
};

/* An image that is written to its file. */
struct picture {
	struct smalti_image_file file; /* first: callbacks get the picture */
	int status;
	struct smalti_error error;
};

static const struct smalti_train_samples *samples_of(const struct smalti_sample_images *images)
{
	return &images->trainer->options->samples;
}

static char *path_of(const struct smalti_train_options *options, int64_t step, int64_t prompt,
		     struct smalti_error *error)
{
	return smalti_format(error, "%s/samples/step-%" PRId64 "/%" PRId64 ".png", options->output, step,
			     prompt + 1);
}

bool smalti_sample_images_made(const struct smalti_train_options *options, int64_t step)
{
	bool all = true;
	for (int64_t i = 0; i < options->samples.count && all; i++) {
		SCOPED(free) char *path = path_of(options, step, i, NULL);
		all = path && smalti_find_file(path, NULL) > 0;
	}
	return all;
}

/* Opens the pipeline with the transformer of the checkpoint. */
static struct smalti_model *open_model(const struct smalti_sample_images *images, int64_t step,
				       const struct smalti_model_company *company, struct smalti_error *error)
{
	const struct smalti_trainer *trainer = images->trainer;
	struct smalti_model_options options = trainer->options->model;
	const char *own = trainer->base ? "adapter" : "transformer";
	SCOPED(free)
	char *weights = smalti_format(error, "%s/step-%" PRId64 "/%s", trainer->options->output, step,
				      trainer->averages.count ? "ema" : own);
	const struct smalti_lora lora = {weights, 1};
	if (trainer->base) {
		options.loras = &lora;
		options.lora_count = 1;
	} else {
		options.transformer = weights;
	}
	if (weights)
		return smalti_model_open_beside(trainer->session, &options, company, error);
	smalti_ranks_give_up(error);
	return NULL;
}

static struct smalti_request request_of(const struct smalti_sample_images *images, int64_t prompt)
{
	const struct smalti_train_samples *samples = samples_of(images);
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.prompt = samples->prompts[prompt];
	request.width = samples->width;
	request.height = samples->height;
	request.steps = samples->steps;
	request.seed = images->trainer->options->seed;
	return request;
}

/* Returns what a model needs to know beside the trainer. */
static struct smalti_model_company company_of(const struct smalti_sample_images *images)
{
	return (struct smalti_model_company){
	    .held_bytes = smalti_trainer_bytes(images->trainer),
	    .texts = {images->states, images->states ? samples_of(images)->count + 1 : 0}};
}

static int encode(struct smalti_sample_images *images, int64_t step, struct smalti_error *error)
{
	const int64_t prompts = samples_of(images)->count;
	const struct smalti_model_company company = company_of(images);
	struct smalti_request request = request_of(images, 0);
	SCOPED(free) const char **texts = smalti_calloc(prompts + 1, sizeof(*texts), error);
	SCOPED(free)
	struct smalti_text_states *states = smalti_calloc(prompts + 1, sizeof(*states), error);
	if (smalti_ranks_agree(texts && states ? 0 : -1, NULL, error) < 0 || !texts || !states)
		return -1;
	struct smalti_model *model = open_model(images, step, &company, error);
	if (!model)
		return -1;
	memcpy(texts, samples_of(images)->prompts, (size_t)prompts * sizeof(*texts));
	texts[prompts] = "";
	const int status = smalti_text_encode(model, texts, prompts + 1, request.cleaning, states, error);
	smalti_model_close(model);
	if (status < 0)
		return -1;
	images->states = states;
	states = NULL;
	return 0;
}

/* Checks one image, as all have one size. */
static int check_image(const struct smalti_sample_images *images, int64_t step, struct smalti_error *error)
{
	const struct smalti_model_company company = company_of(images);
	struct smalti_request request = request_of(images, 0);
	struct smalti_model *model = open_model(images, step, &company, error);
	struct smalti_plan *plan = model ? smalti_request_resolve(model, &request, error) : NULL;
	const int status = plan ? smalti_plan_check_memory(plan, error) : -1;
	smalti_plan_free(plan);
	smalti_model_close(model);
	return smalti_ranks_agree(status, NULL, error);
}

struct smalti_sample_images *smalti_sample_images_open(const struct smalti_trainer *trainer, int64_t step,
						       struct smalti_error *error)
{
	struct smalti_sample_images *images = smalti_calloc(1, sizeof(*images), error);
	if (!images) {
		smalti_ranks_give_up(error);
		return NULL;
	}
	images->trainer = trainer;
	if (encode(images, step, error) == 0 && check_image(images, step, error) == 0)
		return images;
	smalti_error_prefix(error, "sample images");
	smalti_sample_images_close(images);
	return NULL;
}

void smalti_sample_images_close(struct smalti_sample_images *images)
{
	if (!images)
		return;
	for (int64_t i = 0; images->states && i <= samples_of(images)->count; i++)
		smalti_text_states_free(&images->states[i]);
	free(images->states);
	free(images);
}

static void on_done(void *user, int status, const struct smalti_error *error)
{
	struct picture *picture = user;
	picture->error = *error;
	picture->status = status < 0 ? -1 : smalti_image_file_commit(&picture->file, &picture->error);
}

static int submit(const struct smalti_sample_images *images, struct smalti_batch *batch,
		  struct picture *picture, int64_t prompt, struct smalti_error *error)
{
	const struct smalti_image_callbacks callbacks = {
	    .user = picture, .rows = smalti_image_file_rows, .done = on_done};
	struct smalti_request request = request_of(images, prompt);
	struct smalti_model_info info;
	struct smalti_plan *plan = smalti_request_resolve(batch->model, &request, error);
	if (!plan)
		return -1;
	smalti_model_info(batch->model, &info);
	const struct smalti_image_origin origin = {
	    .model = info.digest,
	    .scheduler = info.scheduler,
	    .precision = smalti_precisions[images->trainer->options->model.precision]};
	picture->file.width = request.width;
	picture->file.height = request.height;
	picture->file.parameters = smalti_image_parameters(&request, 0, &origin, error);
	const int status =
	    picture->file.parameters ? smalti_batch_submit(batch, plan, 0, &callbacks, error) : -1;
	smalti_plan_free(plan);
	return status;
}

static int make_directory(const struct smalti_sample_images *images, int64_t step, struct smalti_error *error)
{
	SCOPED(free)
	char *all = smalti_format(error, "%s/samples", images->trainer->options->output);
	SCOPED(free) char *own = all ? smalti_format(error, "%s/step-%" PRId64, all, step) : NULL;
	if (!own || smalti_make_directory(all, error) < 0 || smalti_make_directory(own, error) < 0)
		return -1;
	smalti_writer_clean(own, false);
	return 0;
}

/* Makes all images at a time, as memory allows. */
static int make_images(const struct smalti_sample_images *images, struct smalti_model *model, int64_t step,
		       struct picture *pictures, struct smalti_error *error)
{
	struct smalti_batch *batch = smalti_batch_open(model, error);
	int status = batch ? 0 : -1;
	if (batch && smalti_ranks_own() > 0) {
		smalti_batch_follow(batch);
		smalti_batch_close(batch);
		return 0;
	}
	for (int64_t i = 0; i < samples_of(images)->count && status == 0; i++) {
		pictures[i].file.path = path_of(images->trainer->options, step, i, error);
		status = pictures[i].file.path ? submit(images, batch, &pictures[i], i, error) : -1;
	}
	smalti_batch_close(batch);
	return status;
}

int smalti_sample_images_make(const struct smalti_sample_images *images, int64_t step,
			      struct smalti_error *error)
{
	const int64_t count = samples_of(images)->count;
	const struct smalti_model_company company = company_of(images);
	SCOPED(free) struct picture *pictures = smalti_calloc(count, sizeof(*pictures), error);
	const bool ready = pictures && (smalti_ranks_own() > 0 || make_directory(images, step, error) == 0);
	if (smalti_ranks_agree(ready ? 0 : -1, NULL, error) < 0 || !pictures)
		return -1;
	struct smalti_model *model = open_model(images, step, &company, error);
	int status = model ? make_images(images, model, step, pictures, error) : -1;
	for (int64_t i = 0; i < count; i++) {
		if (status == 0 && pictures[i].status < 0)
			status = smalti_pass(error, &pictures[i].error);
		smalti_image_file_close(&pictures[i].file);
	}
	smalti_model_close(model);
	return smalti_ranks_agree(status, NULL, error);
}
