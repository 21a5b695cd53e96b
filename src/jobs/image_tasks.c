/* SPDX-License-Identifier: Apache-2.0 */
#include "codelets/codelets.h"
#include "graphs/denoising_count.h"
#include "graphs/diffusion.h"
#include "jobs/batch.h"
#include "jobs/interpolator.h"
#include "jobs/model.h"
#include "jobs/plan_strategy.h"
#include "jobs/precision.h"
#include "jobs/transfer_report.h"
#include "jobs/vae.h"
#include "kernels/kernels.h"
#include "kernels/layout.h"
#include "kernels/scratch.h"

#include <signal.h>

static int check_made(const struct smalti_image_job *work, const char *model, enum smalti_dtype compute,
		      int64_t count, const float *values, struct smalti_error *error)
{
	const int64_t *shape = work->latent_shape;
	const struct smalti_maker maker = {model, compute, work->latents, shape[0] * shape[1] * shape[2]};
	return smalti_precision_check_made(count, values, &maker, error);
}

static int deliver_latents(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct smalti_image_job *work = user;
	if (check_made(work, "transformer", smalti_precision_dtype(work->batch->model->precision), count,
		       values, error) < 0)
		return -1;
	if (!work->receiver.latents)
		return 0;
	return work->receiver.latents(work->receiver.user, work->latent_shape, values, error);
}

/* Hands over `rows` rows of the image from `first` on, as bytes; rows of `pixels` begin every `stride`
 * values. */
static int hand_over(const struct smalti_image_job *work, int64_t first, int64_t rows, int64_t stride,
		     const float *pixels, struct smalti_error *error)
{
	const int64_t line = work->plan->request.width * 3;
	unsigned char *rgb = smalti_scratch(SMALTI_SCRATCH_ROWS, rows * line, error);
	if (!rgb)
		return -1;
	for (int64_t row = 0; row < rows; row++)
		smalti_kernels()->to_u8(line, pixels + row * stride, rgb + row * line);
	for (int64_t row = 0; work->plan->request.keep_original && row < rows; row++)
		smalti_plan_image_keep(work->plan, first + row, rgb + row * line);
	return work->receiver.rows(work->receiver.user, first, rows, rgb, error);
}

static int hand_over_row(void *user, int64_t row, const float *pixels, struct smalti_error *error)
{
	return hand_over(user, row, 1, 0, pixels, error);
}

/* Delivers the rows of a band that the image keeps. */
static int deliver_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
			struct smalti_error *error)
{
	struct smalti_image_job *work = user;
	const int64_t keep = smalti_min(work->plan->made_height - first, rows);
	if (keep <= 0)
		return 0;
	if (check_made(work, "VAE", work->batch->model->vae->compute, rows * width * 3, pixels, error) < 0)
		return -1;
	if (work->resizer) /* bins are never padded */
		return smalti_interpolator_rows(work->resizer, first, keep, pixels, hand_over_row, work,
						error);
	return hand_over(work, first, keep, width * 3, pixels, error);
}

/* Reads rows of the image to begin with, for the encoder. */
static int read_image(void *user, int64_t first, int64_t rows, int64_t width, float *pixels,
		      struct smalti_error *error)
{
	const struct smalti_image_job *work = user;
	const int64_t line = width * 3;
	(void)error;
	smalti_from_u8(rows * line, work->plan->image->rgb + first * line, pixels);
	return 0;
}

/* Inserts the encoding of the image to begin with. */
static struct smalti_diffusion_image insert_encoding(struct smalti_image_job *work)
{
	const struct smalti_plan *plan = work->plan;
	const struct smalti_vae_net *encoder = plan->model->encoder;
	return (struct smalti_diffusion_image){
	    .moments =
		smalti_vae_encode(encoder, work->job.task_group, &plan->image->encoding, read_image, work),
	    .vae = &encoder->config,
	    .draws = plan->request.posterior == SMALTI_POSTERIOR_SAMPLE,
	    .mask = plan->image->latent_mask,
	    .from_noise = plan->image->mask && plan->request.strength == 1};
}

/* Waits for the tasks of an image, while other threads insert. */
static void wait_for_tasks(void *user)
{
	struct smalti_image_job *work = user;
	smalti_job_pause(&work->job);
	smalti_task_group_wait(work->job.task_group);
	smalti_job_resume(&work->job);
}

static void report_steps(void *user, const struct smalti_step_report *report)
{
	const struct smalti_image_job *work = user;
	if (work->receiver.steps)
		work->receiver.steps(work->receiver.user, report);
}

static struct smalti_tile *insert_diffusion(struct smalti_image_job *work)
{
	static const enum smalti_dtype dtypes[] = {SMALTI_F32, SMALTI_F16, SMALTI_BF16};
	struct smalti_model *model = work->batch->model;
	const struct smalti_plan *plan = work->plan;
	const struct smalti_request *request = &plan->request;
	const int64_t channels = model->denoiser->in_channels;
	const int64_t elements = channels * plan->latent_height * plan->latent_width;
	const struct smalti_diffusion_cache step_cache = {
	    .rule = plan->step_cache, .wait = wait_for_tasks, .report = report_steps, .user = work};
	work->latents = request->latents ? request->latents + work->image * elements : NULL;
	struct smalti_diffusion diffusion = {
	    .sampler = plan->sampler,
	    .height = plan->latent_height,
	    .width = plan->latent_width,
	    .vae_factor = smalti_model_factor(model),
	    .band_tokens = request->tile_tokens,
	    .strategy = &plan->strategy,
	    .seed = request->seed,
	    .image = work->image,
	    .images = request->images,
	    .noise_dtype = dtypes[request->noise],
	    .latents = work->latents,
	    .guidance = (float)request->guidance,
	    .step_cache = plan->step_cache.kind ? &step_cache : NULL,
	};
	for (int i = 0; i < 2; i++)
		if (work->texts[i])
			diffusion.caches[diffusion.cache_count++] = work->texts[i]->cache;
	work->job.task_group->grain = request->grain;
	struct smalti_diffusion_image start = {0};
	if (plan->image) {
		start = insert_encoding(work);
		diffusion.start = &start;
	}
	struct smalti_tile *latents =
	    smalti_diffuse(smalti_plan_denoiser(plan), work->job.task_group, &diffusion);
	smalti_tile_release(start.moments);
	return latents;
}

/* Returns the number of an image's captions, and how many tokens each has. */
static int caption_tokens(const struct smalti_image_job *work, int64_t tokens[2])
{
	int captions = 0;
	for (int i = 0; i < 2; i++)
		if (work->texts[i])
			tokens[captions++] = work->texts[i]->tokens;
	return captions;
}

int smalti_image_estimate(struct smalti_image_job *work, struct smalti_error *error)
{
	const struct smalti_plan *plan = work->plan;
	struct smalti_denoising denoising = smalti_plan_denoising(plan);
	struct smalti_load load;
	denoising.band_tokens = denoising.tokens;
	denoising.branches = caption_tokens(work, denoising.prompt_tokens);
	if (smalti_denoising_loads(&denoising, &smalti_strategy_none, false, 1, &load, error) < 0)
		return -1;
	work->flops = (double)plan->sampler->steps * load.flops;
	work->flops += work->receiver.rows ? plan->decoding.flops : 0;
	work->flops += plan->image ? plan->image->encoding.flops : 0;
	return 0;
}

static void insert_tasks(struct smalti_image_job *work)
{
	struct smalti_model *model = work->batch->model;
	const struct smalti_plan *plan = work->plan;
	int64_t tokens[2];
	const int captions = caption_tokens(work, tokens);
	smalti_transfer_report_plan(plan, work->job.task_group, tokens, captions);
	struct smalti_tile *latents = insert_diffusion(work);
	smalti_task_group_stage(work->job.task_group, plan->sampler->steps + 1);
	smalti_insert(deliver, work->job.task_group, (.x = latents),
		      .count = work->latent_shape[0] * work->latent_shape[1] * work->latent_shape[2],
		      .sink = deliver_latents, .user = work);
	if (work->receiver.rows)
		smalti_vae_decode(model->vae, work->job.task_group, latents, false, &plan->decoding,
				  deliver_rows, work);
	smalti_tile_release(latents);
	smalti_job_submit(&work->job);
}

static void *insert_apart(void *image)
{
	struct smalti_image_job *work = image;
	smalti_job_resume(&work->job);
	insert_tasks(work);
	return NULL;
}

/* Inserts the tasks of an image on a thread of its own, which gets no signals, so that other images go on
 * where it waits. */
static void insert_aside(struct smalti_image_job *work)
{
	sigset_t all, before;
	sigfillset(&all);
	smalti_job_pause(&work->job);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	work->apart = pthread_create(&work->inserter, NULL, insert_apart, work) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!work->apart)
		insert_apart(work);
}

void smalti_image_insert(struct smalti_image_job *work)
{
	if (work->plan->step_cache.kind)
		insert_aside(work);
	else
		insert_tasks(work);
}
