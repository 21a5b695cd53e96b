/* SPDX-License-Identifier: Apache-2.0 */
#include "smalti/generate.h"

#include "base/alloc.h"
#include "base/argument.h"
#include "codelets/codelets.h"
#include "graphs/diffusion.h"
#include "jobs/interpolator.h"
#include "jobs/model.h"
#include "jobs/plan.h"
#include "jobs/queue.h"
#include "jobs/text.h"
#include "jobs/vae.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"
#include "rt/throttle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A picture that is made. */
struct picture_job {
	struct smalti_job job;
	struct smalti_batch *batch;
	struct smalti_plan *plan;
	struct smalti_interpolator *resizer; /* NULL: the picture is kept as it is made */
	const struct smalti_text *texts[2];  /* negative (or NULL), prompt */
	struct smalti_picture receiver;
	int64_t latent_shape[3];
	double flops; /* foreseen, but for the texts */
};

struct smalti_batch {
	struct smalti_model *model;
	struct smalti_queue queue;
	struct smalti_texts *texts;
	void (*watch)(void *user, const struct smalti_batch_progress *progress);
	void *watch_user;
};

void smalti_request_defaults(struct smalti_request *request)
{
	*request = (struct smalti_request){
	    .prompt = "", .images = 1, .steps = 20, .guidance = 4.5, .cleaning = SMALTI_CLEANING_BASIC};
}

const char *smalti_scheduler_name(int index)
{
	const struct smalti_sampler_name *name = smalti_sampler_name_at(index);
	return name ? name->name : NULL;
}

struct smalti_batch *smalti_batch_open(struct smalti_model *model, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (smalti_check_given(model, "model", error) < 0)
		return NULL;
	struct smalti_batch *batch = smalti_calloc(1, sizeof(*batch), error);
	if (!batch)
		return NULL;
	batch->model = model;
	/* Enough pictures to keep every worker busy while others are between stages. */
	const int64_t most = 2 * (int64_t)smalti_session_workers(model->session) + 2;
	if (smalti_queue_open(&batch->queue, model->session, most, error) == 0)
		batch->texts = smalti_texts_new(model, batch->queue.cancelled, error);
	if (!batch->texts) {
		smalti_queue_close(&batch->queue);
		free(batch);
		return NULL;
	}
	return batch;
}

static void free_picture(struct picture_job *picture)
{
	for (int i = 0; i < 2; i++)
		if (picture->texts[i])
			smalti_text_put(picture->batch->texts, picture->texts[i]);
	smalti_interpolator_free(picture->resizer);
	smalti_plan_free(picture->plan);
	free(picture);
}

static void complete(struct smalti_job *job)
{
	struct picture_job *picture = (struct picture_job *)job;
	struct smalti_error error = SMALTI_NO_ERROR;
	const int status = smalti_scope_status(job->scope, &error);
	picture->receiver.done(picture->receiver.user, status, &error);
	free_picture(picture);
}

static bool encoded_together(const struct picture_job *picture)
{
	return picture->texts[0] && picture->texts[0]->scope == picture->texts[1]->scope;
}

/* A picture's share, and where it is. */
static double share_of(const struct picture_job *picture, struct smalti_batch_progress *where)
{
	struct smalti_scope_progress own, text;
	smalti_scope_progress(picture->job.scope, &own);
	double done = own.done < picture->flops ? own.done : picture->flops, all = picture->flops;
	int64_t left = 0;
	for (int i = 0; i < 2; i++)
		if (picture->texts[i] && !(i == 1 && encoded_together(picture))) {
			smalti_scope_progress(picture->texts[i]->scope, &text);
			done += text.done;
			all += text.inserted;
			left += text.left;
		}
	const int64_t steps = picture->plan->sampler->steps;
	const int64_t step = own.stage < 1 ? 1 : own.stage < steps ? own.stage : steps;
	where->stage = own.stage <= 1 && left ? SMALTI_STAGE_TEXT
		       : own.stage <= steps   ? SMALTI_STAGE_DENOISING
					      : SMALTI_STAGE_DECODING;
	where->step = where->stage == SMALTI_STAGE_TEXT ? 0 : step;
	where->steps = steps;
	return done / all;
}

void smalti_batch_progress(struct smalti_batch *batch, struct smalti_batch_progress *progress)
{
	*progress = (struct smalti_batch_progress){0};
	pthread_mutex_lock(&batch->queue.mutex);
	for (const struct smalti_job *job = batch->queue.oldest; job; job = job->next) {
		struct smalti_batch_progress where = {0};
		progress->pictures +=
		    share_of((const struct picture_job *)job, progress->in_flight++ ? &where : progress);
	}
	pthread_mutex_unlock(&batch->queue.mutex);
}

static void report_progress(void *user)
{
	const struct smalti_batch *batch = user;
	struct smalti_batch_progress progress;
	smalti_batch_progress(user, &progress);
	batch->watch(batch->watch_user, &progress);
}

void smalti_batch_watch(struct smalti_batch *batch,
			void (*watch)(void *user, const struct smalti_batch_progress *progress), void *user)
{
	batch->watch = watch;
	batch->watch_user = user;
	batch->queue.progress = watch ? report_progress : NULL;
	batch->queue.user = batch;
}

void smalti_batch_wait(struct smalti_batch *batch)
{
	smalti_queue_drain(&batch->queue);
}

void smalti_batch_cancel(struct smalti_batch *batch)
{
	smalti_queue_cancel(&batch->queue);
}

void smalti_batch_close(struct smalti_batch *batch)
{
	if (!batch)
		return;
	smalti_batch_wait(batch);
	smalti_texts_free(batch->texts);
	smalti_queue_close(&batch->queue);
	free(batch);
}

/* As the memory allows. */
static int admit(struct smalti_batch *batch, const struct smalti_plan *plan, struct smalti_error *error)
{
	struct smalti_session *session = batch->model->session;
	struct smalti_model_info info;
	smalti_model_info(batch->model, &info);
	const int64_t budget = smalti_memory_for_pictures(batch->model);
	if (plan->bytes > budget && !smalti_session_spills(session))
		return smalti_fail(
		    error, SMALTI_ENOMEM,
		    "a picture of %lldx%lld needs about %lld MB but %lld MB are allowed; raise the memory "
		    "limit, give a scratch folder, or make it smaller",
		    (long long)plan->request.width, (long long)plan->request.height,
		    (long long)((plan->bytes + info.weight_bytes + SMALTI_PROGRAM_BYTES) >> 20),
		    (long long)(smalti_session_memory(session) >> 20));
	smalti_queue_admit(&batch->queue, plan->bytes, budget);
	if (batch->queue.bytes_in_flight + plan->bytes + smalti_texts_unused_bytes(batch->texts) > budget)
		smalti_texts_drop_unused(batch->texts);
	return 0;
}

static int get_texts(struct picture_job *picture, int64_t priority, struct smalti_error *error)
{
	const struct smalti_request *request = &picture->plan->request;
	struct smalti_texts *texts = picture->batch->texts;
	const char *const prompts[2] = {request->negative_prompt, request->prompt};
	const int first = picture->plan->guided ? 0 : 1;
	return smalti_texts_get(texts, prompts + first, 2 - first, request->cleaning, priority,
				picture->texts + first, error);
}

static int deliver_latents(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct picture_job *picture = user;
	if (smalti_check_made(count, values, "transformer", error) < 0)
		return -1;
	if (!picture->receiver.latents)
		return 0;
	return picture->receiver.latents(picture->receiver.user, picture->latent_shape, values, error);
}

/* `rows` rows of the picture from `first` on, as bytes; those of `pixels` begin every `stride` values. */
static int hand_over(const struct picture_job *picture, int64_t first, int64_t rows, int64_t stride,
		     const float *pixels, struct smalti_error *error)
{
	const int64_t line = picture->plan->request.width * 3;
	unsigned char *rgb = smalti_scratch(SMALTI_SCRATCH_ROWS, rows * line, error);
	if (!rgb)
		return -1;
	for (int64_t row = 0; row < rows; row++)
		smalti_to_u8(line, pixels + row * stride, rgb + row * line);
	return picture->receiver.rows(picture->receiver.user, first, rows, rgb, error);
}

static int hand_over_row(void *user, int64_t row, const float *pixels, struct smalti_error *error)
{
	return hand_over(user, row, 1, 0, pixels, error);
}

/* The rows that are kept of a band. */
static int deliver_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
			struct smalti_error *error)
{
	struct picture_job *picture = user;
	const int64_t left = picture->plan->made_height - first;
	const int64_t keep = left < rows ? left : rows;
	if (keep <= 0)
		return 0;
	if (smalti_check_made(rows * width * 3, pixels, "VAE", error) < 0)
		return -1;
	if (picture->resizer) /* bins are never padded */
		return smalti_interpolator_rows(picture->resizer, first, keep, pixels, hand_over_row, picture,
						error);
	return hand_over(picture, first, keep, width * 3, pixels, error);
}

static struct smalti_tile *insert_diffusion(struct picture_job *picture, int64_t image)
{
	static const enum smalti_dtype dtypes[] = {SMALTI_F32, SMALTI_F16, SMALTI_BF16};
	struct smalti_model *model = picture->batch->model;
	const struct smalti_plan *plan = picture->plan;
	const struct smalti_request *request = &plan->request;
	const int64_t channels = model->denoiser->in_channels;
	const int64_t elements = channels * plan->latent_height * plan->latent_width;
	struct smalti_diffusion diffusion = {
	    .sampler = plan->sampler,
	    .height = plan->latent_height,
	    .width = plan->latent_width,
	    .vae_factor = smalti_model_factor(model),
	    .band_tokens = request->tile_tokens,
	    .seed = request->seed,
	    .image = image,
	    .images = request->images,
	    .noise_dtype = dtypes[request->noise],
	    .latents = request->latents ? request->latents + image * elements : NULL,
	    .guidance = (float)request->guidance,
	};
	for (int i = 0; i < 2; i++)
		if (picture->texts[i])
			diffusion.captions[diffusion.caption_count++] = picture->texts[i]->caption;
	return smalti_diffuse(model->denoiser, picture->job.scope, &diffusion);
}

/* The arithmetic of a picture, once its texts are known. */
static double foresee(const struct picture_job *picture)
{
	const struct smalti_model *model = picture->batch->model;
	const struct smalti_plan *plan = picture->plan;
	const int64_t patch = model->denoiser->patch_size;
	int64_t tokens[2];
	int captions = 0;
	for (int i = 0; i < 2; i++)
		if (picture->texts[i])
			tokens[captions++] = picture->texts[i]->tokens;
	const double step = model->denoiser->functions->flops(
	    model->denoiser, plan->latent_height / patch * (plan->latent_width / patch), tokens, captions);
	const double decoding = picture->receiver.rows ? plan->decoding.flops : 0;
	return (double)plan->sampler->steps * step + decoding;
}

static void insert_tasks(struct picture_job *picture, int64_t image)
{
	struct smalti_model *model = picture->batch->model;
	const struct smalti_plan *plan = picture->plan;
	struct smalti_tile *latents = insert_diffusion(picture, image);
	smalti_scope_stage(picture->job.scope, plan->sampler->steps + 1);
	smalti_insert(deliver, picture->job.scope, (.x = latents),
		      .count = picture->latent_shape[0] * picture->latent_shape[1] * picture->latent_shape[2],
		      .sink = deliver_latents, .user = picture);
	if (picture->receiver.rows)
		smalti_vae_decode(model->vae, picture->job.scope, latents, false, &plan->decoding,
				  deliver_rows, picture);
	smalti_tile_release(latents);
}

/* What a picture is resized with, if it is. */
static int open_resizer(struct picture_job *picture, struct smalti_error *error)
{
	const struct smalti_plan *plan = picture->plan;
	if (plan->made_width == plan->request.width && plan->made_height == plan->request.height)
		return 0;
	picture->resizer = smalti_interpolator_new(plan->made_height, plan->made_width, plan->request.height,
						   plan->request.width, error);
	return picture->resizer ? 0 : -1;
}

static int prepare(struct picture_job *picture, struct smalti_error *error)
{
	struct smalti_batch *batch = picture->batch;
	struct smalti_model *model = batch->model;
	const struct smalti_plan *plan = picture->plan;
	const int64_t submitted = batch->queue.submitted;
	char name[32];
	snprintf(name, sizeof(name), "picture %lld", (long long)submitted);
	if (admit(batch, plan, error) < 0 || get_texts(picture, -submitted, error) < 0 ||
	    open_resizer(picture, error) < 0)
		return -1;
	picture->latent_shape[0] = model->denoiser->in_channels;
	picture->latent_shape[1] = plan->latent_height;
	picture->latent_shape[2] = plan->latent_width;
	picture->flops = foresee(picture);
	picture->job.bytes = plan->bytes;
	picture->job.complete = complete;
	if (smalti_job_open(&batch->queue, &picture->job, name, error) < 0)
		return -1;
	smalti_scope_needs(picture->job.scope, model->scope);
	for (int i = 0; i < 2; i++)
		if (picture->texts[i])
			smalti_scope_needs(picture->job.scope, picture->texts[i]->scope);
	return 0;
}

static int submit(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
		  const struct smalti_picture *receiver, struct smalti_error *error)
{
	if (smalti_scope_status(batch->queue.cancelled, error) < 0)
		return -1;
	struct picture_job *picture = smalti_calloc(1, sizeof(*picture), error);
	if (!picture)
		return -1;
	picture->batch = batch;
	picture->plan = smalti_plan_share(plan);
	picture->receiver = *receiver;
	if (prepare(picture, error) < 0) {
		free_picture(picture);
		return -1;
	}
	insert_tasks(picture, image);
	smalti_job_submit(&picture->job);
	return 0;
}

static int check(const struct smalti_batch *batch, const struct smalti_plan *plan, int64_t image,
		 const struct smalti_picture *picture, struct smalti_error *error)
{
	if (smalti_check_given(batch, "batch", error) < 0 || smalti_check_given(plan, "plan", error) < 0 ||
	    smalti_check_range(image, 0, plan->request.images - 1, "image", error) < 0 ||
	    smalti_check_given(picture, "picture", error) < 0 ||
	    smalti_check_given((const void *)(intptr_t)picture->done, "the picture's function 'done'",
			       error) < 0)
		return -1;
	if (plan->model != batch->model)
		return smalti_fail(error, SMALTI_EINVAL,
				   "plan: expected one of the batch's model, found "
				   "another model's");
	return 0;
}

int smalti_batch_submit(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
			const struct smalti_picture *picture, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check(batch, plan, image, picture, error) < 0)
		return -1;
	smalti_insertion_begin();
	const int status = submit(batch, plan, image, picture, error);
	smalti_insertion_end();
	return status;
}
