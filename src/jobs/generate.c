/* SPDX-License-Identifier: Apache-2.0 */
#include "smalti/generate.h"

#include "base/alloc.h"
#include "base/argument.h"
#include "codelets/codelets.h"
#include "graphs/diffusion.h"
#include "jobs/interpolator.h"
#include "jobs/landing.h"
#include "jobs/model.h"
#include "jobs/plan.h"
#include "jobs/text.h"
#include "jobs/vae.h"
#include "kernels/elementwise.h"
#include "kernels/scratch.h"
#include "rt/throttle.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

/* A picture in flight. */
struct flight {
	struct smalti_landed landed;
	struct smalti_batch *batch;
	struct smalti_scope *scope;
	struct smalti_plan *plan;
	struct smalti_interpolator *resizer; /* NULL: the picture is kept as it is made */
	const struct smalti_text *texts[2];  /* negative (or NULL), prompt */
	struct smalti_picture picture;
	int64_t latent_shape[3];
	double flops;         /* foreseen, but for the texts */
	struct flight *after; /* submitted after this one */
};

struct smalti_batch {
	struct smalti_model *model;
	struct smalti_scope *scope; /* without tasks: failed when the batch is cancelled */
	struct smalti_texts *texts;
	int64_t submitted; /* ever: earlier pictures go first */
	int64_t in_flight, bytes_in_flight;
	void (*watch)(void *user, const struct smalti_batch_progress *progress);
	void *watch_user;
	struct smalti_landing landing;
	pthread_mutex_t mutex; /* guards what follows */
	struct flight *oldest; /* in flight, in order of submission */
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
	batch->scope = smalti_scope_new(model->session, "batch", 0, error);
	batch->texts = batch->scope ? smalti_texts_new(model, batch->scope, error) : NULL;
	if (!batch->texts) {
		smalti_scope_free(batch->scope);
		free(batch);
		return NULL;
	}
	pthread_mutex_init(&batch->mutex, NULL);
	smalti_landing_init(&batch->landing);
	return batch;
}

/* Landing: on a worker, when the last task of a picture has ended. */
static void landed(void *user)
{
	struct flight *flight = user;
	smalti_land(&flight->batch->landing, &flight->landed);
}

/* Into and out of the list of those in flight. */
static void take_off(struct flight *flight)
{
	struct smalti_batch *batch = flight->batch;
	pthread_mutex_lock(&batch->mutex);
	struct flight **last = &batch->oldest;
	while (*last)
		last = &(*last)->after;
	*last = flight;
	pthread_mutex_unlock(&batch->mutex);
	batch->in_flight++;
	batch->bytes_in_flight += flight->plan->bytes;
}

static void leave(struct flight *flight)
{
	struct smalti_batch *batch = flight->batch;
	pthread_mutex_lock(&batch->mutex);
	struct flight **at = &batch->oldest;
	while (*at != flight)
		at = &(*at)->after;
	*at = flight->after;
	pthread_mutex_unlock(&batch->mutex);
	batch->in_flight--;
	batch->bytes_in_flight -= flight->plan->bytes;
}

static void free_flight(struct flight *flight)
{
	for (int i = 0; i < 2; i++)
		if (flight->texts[i])
			smalti_text_put(flight->batch->texts, flight->texts[i]);
	smalti_scope_free(flight->scope);
	smalti_interpolator_free(flight->resizer);
	smalti_plan_free(flight->plan);
	free(flight);
}

/* Serves all that have landed. */
static void serve_landed(void *user)
{
	struct smalti_batch *batch = user;
	struct smalti_landed *landed = smalti_landing_take(&batch->landing);
	for (struct smalti_landed *next; landed; landed = next) {
		struct flight *flight = (struct flight *)landed;
		next = landed->next;
		struct smalti_error error = SMALTI_NO_ERROR;
		int status = smalti_scope_status(flight->scope, &error);
		leave(flight);
		flight->picture.done(flight->picture.user, status, &error);
		free_flight(flight);
	}
}

static bool encoded_together(const struct flight *flight)
{
	return flight->texts[0] && flight->texts[0]->scope == flight->texts[1]->scope;
}

/* A picture's share, and where it is. */
static double share_of(const struct flight *flight, struct smalti_batch_progress *where)
{
	struct smalti_scope_progress own, text;
	smalti_scope_progress(flight->scope, &own);
	double done = own.done < flight->flops ? own.done : flight->flops, all = flight->flops;
	int64_t left = 0;
	for (int i = 0; i < 2; i++)
		if (flight->texts[i] && !(i == 1 && encoded_together(flight))) {
			smalti_scope_progress(flight->texts[i]->scope, &text);
			done += text.done;
			all += text.inserted;
			left += text.left;
		}
	const int64_t steps = flight->plan->sampler->steps;
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
	pthread_mutex_lock(&batch->mutex);
	for (const struct flight *flight = batch->oldest; flight; flight = flight->after) {
		struct smalti_batch_progress where = {0};
		progress->pictures += share_of(flight, progress->in_flight++ ? &where : progress);
	}
	pthread_mutex_unlock(&batch->mutex);
}

void smalti_batch_watch(struct smalti_batch *batch,
			void (*watch)(void *user, const struct smalti_batch_progress *progress), void *user)
{
	batch->watch = watch;
	batch->watch_user = user;
}

static void tell(struct smalti_batch *batch)
{
	struct smalti_batch_progress progress;
	if (!batch->watch)
		return;
	smalti_batch_progress(batch, &progress);
	batch->watch(batch->watch_user, &progress);
}

/* While the insertion of a picture is blocked. */
static void serve_meanwhile(void *user)
{
	serve_landed(user);
	tell(user);
}

/* Waits a moment for landings. */
static void serve(struct smalti_batch *batch)
{
	if (smalti_landing_await(&batch->landing))
		serve_landed(batch);
	else
		tell(batch);
}

/* Between one look and the next, other threads may submit. */
static bool in_flight(struct smalti_batch *batch)
{
	smalti_insertion_begin();
	serve_landed(batch);
	const bool any = batch->in_flight > 0;
	if (any)
		tell(batch);
	smalti_insertion_end();
	return any;
}

void smalti_batch_wait(struct smalti_batch *batch)
{
	while (in_flight(batch))
		smalti_landing_await(&batch->landing);
}

void smalti_batch_cancel(struct smalti_batch *batch)
{
	smalti_scope_cancel(batch->scope);
}

void smalti_batch_close(struct smalti_batch *batch)
{
	if (!batch)
		return;
	smalti_batch_wait(batch);
	smalti_texts_free(batch->texts);
	smalti_scope_free(batch->scope);
	smalti_landing_destroy(&batch->landing);
	pthread_mutex_destroy(&batch->mutex);
	free(batch);
}

/* Enough pictures to keep every worker busy while others are between stages, in the memory there is. */
static int admit(struct smalti_batch *batch, const struct smalti_plan *plan, struct smalti_error *error)
{
	struct smalti_session *session = batch->model->session;
	struct smalti_model_info info;
	smalti_model_info(batch->model, &info);
	const int64_t window = 2 * (int64_t)smalti_session_workers(session) + 2;
	const int64_t budget = smalti_memory_for_pictures(batch->model);
	if (plan->bytes > budget && !smalti_session_spills(session))
		return smalti_fail(
		    error, SMALTI_ENOMEM,
		    "a picture of %lldx%lld needs about %lld MB but %lld MB are allowed; raise the memory "
		    "limit, give a scratch folder, or make it smaller",
		    (long long)plan->request.width, (long long)plan->request.height,
		    (long long)((plan->bytes + info.weight_bytes + SMALTI_PROGRAM_BYTES) >> 20),
		    (long long)(smalti_session_memory(session) >> 20));
	while (batch->in_flight >= window ||
	       (batch->in_flight && batch->bytes_in_flight + plan->bytes > budget))
		serve(batch);
	if (batch->bytes_in_flight + plan->bytes + smalti_texts_unused_bytes(batch->texts) > budget)
		smalti_texts_drop_unused(batch->texts);
	return 0;
}

static int get_texts(struct flight *flight, int64_t priority, struct smalti_error *error)
{
	const struct smalti_request *request = &flight->plan->request;
	struct smalti_texts *texts = flight->batch->texts;
	const char *const prompts[2] = {request->negative_prompt, request->prompt};
	const int first = flight->plan->guided ? 0 : 1;
	return smalti_texts_get(texts, prompts + first, 2 - first, request->cleaning, priority,
				flight->texts + first, error);
}

static int deliver_latents(void *user, int64_t count, const float *values, struct smalti_error *error)
{
	const struct flight *flight = user;
	if (smalti_check_made(count, values, "transformer", error) < 0)
		return -1;
	if (!flight->picture.latents)
		return 0;
	return flight->picture.latents(flight->picture.user, flight->latent_shape, values, error);
}

/* `rows` rows of the picture from `first` on, as bytes; those of `pixels` begin every `stride` values. */
static int hand_over(const struct flight *flight, int64_t first, int64_t rows, int64_t stride,
		     const float *pixels, struct smalti_error *error)
{
	const int64_t line = flight->plan->request.width * 3;
	unsigned char *rgb = smalti_scratch(SMALTI_SCRATCH_ROWS, rows * line, error);
	if (!rgb)
		return -1;
	for (int64_t row = 0; row < rows; row++)
		smalti_to_u8(line, pixels + row * stride, rgb + row * line);
	return flight->picture.rows(flight->picture.user, first, rows, rgb, error);
}

static int hand_over_row(void *user, int64_t row, const float *pixels, struct smalti_error *error)
{
	return hand_over(user, row, 1, 0, pixels, error);
}

/* The rows that are kept of a band. */
static int deliver_rows(void *user, int64_t first, int64_t rows, int64_t width, const float *pixels,
			struct smalti_error *error)
{
	struct flight *flight = user;
	const int64_t left = flight->plan->made_height - first;
	const int64_t keep = left < rows ? left : rows;
	if (keep <= 0)
		return 0;
	if (smalti_check_made(rows * width * 3, pixels, "VAE", error) < 0)
		return -1;
	if (flight->resizer) /* bins are never padded */
		return smalti_interpolator_rows(flight->resizer, first, keep, pixels, hand_over_row, flight,
						error);
	return hand_over(flight, first, keep, width * 3, pixels, error);
}

static struct smalti_tile *insert_diffusion(struct flight *flight, int64_t image)
{
	static const enum smalti_dtype dtypes[] = {SMALTI_F32, SMALTI_F16, SMALTI_BF16};
	struct smalti_model *model = flight->batch->model;
	const struct smalti_plan *plan = flight->plan;
	const struct smalti_request *request = &plan->request;
	const int64_t channels = smalti_dit_config(model->dit)->in_channels;
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
		if (flight->texts[i])
			diffusion.captions[diffusion.caption_count++] = flight->texts[i]->caption;
	return smalti_diffuse(model->dit, flight->scope, &diffusion);
}

/* The arithmetic of a picture, once its texts are known. */
static double foresee(const struct flight *flight)
{
	const struct smalti_model *model = flight->batch->model;
	const struct smalti_plan *plan = flight->plan;
	const int64_t patch = smalti_dit_config(model->dit)->patch_size;
	int64_t tokens[2];
	int captions = 0;
	for (int i = 0; i < 2; i++)
		if (flight->texts[i])
			tokens[captions++] = flight->texts[i]->tokens;
	const double step = smalti_dit_flops(
	    model->dit, plan->latent_height / patch * (plan->latent_width / patch), tokens, captions);
	const double decoding = flight->picture.rows ? plan->decoding.flops : 0;
	return (double)plan->sampler->steps * step + decoding;
}

static void insert_tasks(struct flight *flight, int64_t image)
{
	struct smalti_model *model = flight->batch->model;
	const struct smalti_plan *plan = flight->plan;
	struct smalti_tile *latents = insert_diffusion(flight, image);
	smalti_scope_stage(flight->scope, plan->sampler->steps + 1);
	smalti_insert(deliver, flight->scope, (.x = latents),
		      .count = flight->latent_shape[0] * flight->latent_shape[1] * flight->latent_shape[2],
		      .sink = deliver_latents, .user = flight);
	if (flight->picture.rows)
		smalti_vae_decode(model->vae, flight->scope, latents, false, &plan->decoding, deliver_rows,
				  flight);
	smalti_tile_release(latents);
}

/* What a picture is resized with, if it is. */
static int open_resizer(struct flight *flight, struct smalti_error *error)
{
	const struct smalti_plan *plan = flight->plan;
	if (plan->made_width == plan->request.width && plan->made_height == plan->request.height)
		return 0;
	flight->resizer = smalti_interpolator_new(plan->made_height, plan->made_width, plan->request.height,
						  plan->request.width, error);
	return flight->resizer ? 0 : -1;
}

static int prepare(struct flight *flight, struct smalti_error *error)
{
	struct smalti_batch *batch = flight->batch;
	struct smalti_model *model = batch->model;
	const int64_t priority = -batch->submitted;
	char name[32];
	snprintf(name, sizeof(name), "picture %lld", (long long)batch->submitted);
	if (admit(batch, flight->plan, error) < 0 || get_texts(flight, priority, error) < 0)
		return -1;
	flight->scope = smalti_scope_new(model->session, name, priority, error);
	if (!flight->scope || open_resizer(flight, error) < 0)
		return -1;
	smalti_scope_needs(flight->scope, model->scope);
	smalti_scope_needs(flight->scope, batch->scope);
	for (int i = 0; i < 2; i++)
		if (flight->texts[i])
			smalti_scope_needs(flight->scope, flight->texts[i]->scope);
	flight->latent_shape[0] = smalti_dit_config(model->dit)->in_channels;
	flight->latent_shape[1] = flight->plan->latent_height;
	flight->latent_shape[2] = flight->plan->latent_width;
	flight->flops = foresee(flight);
	return 0;
}

static int submit(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
		  const struct smalti_picture *picture, struct smalti_error *error)
{
	if (smalti_scope_status(batch->scope, error) < 0)
		return -1;
	struct flight *flight = smalti_calloc(1, sizeof(*flight), error);
	if (!flight)
		return -1;
	flight->batch = batch;
	flight->plan = smalti_plan_share(plan);
	flight->picture = *picture;
	if (prepare(flight, error) < 0) {
		free_flight(flight);
		return -1;
	}
	batch->submitted++;
	take_off(flight);
	smalti_throttle_serve(serve_meanwhile, batch);
	insert_tasks(flight, image);
	smalti_throttle_serve(NULL, NULL);
	smalti_scope_seal(flight->scope, landed, flight);
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
