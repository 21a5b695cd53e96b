/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/batch.h"
#include "jobs/follow.h"
#include "jobs/interpolator.h"
#include "jobs/model.h"
#include "jobs/plan.h"
#include "jobs/queue.h"
#include "jobs/transfer_report.h"

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

static void free_image(struct smalti_image_job *work)
{
	for (int i = 0; i < 2; i++)
		if (work->texts[i])
			smalti_text_put(work->batch->texts, work->texts[i]);
	smalti_interpolator_free(work->resizer);
	smalti_plan_free(work->plan);
	free(work);
}

static void complete(struct smalti_job *job)
{
	struct smalti_image_job *work = (struct smalti_image_job *)job;
	struct smalti_error error = SMALTI_NO_ERROR;
	if (work->apart)
		pthread_join(work->inserter, NULL);
	const int status = smalti_task_group_status(job->task_group, &error);
	smalti_transfer_report_send(work->plan, job->task_group, &work->receiver);
	if (status == 0)
		smalti_batch_report_complete(work);
	work->receiver.done(work->receiver.user, status, &error);
	free_image(work);
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
	/* Enough images keep every worker busy while others are between stages. */
	const int64_t max = 2 * (int64_t)model->session->workers + 2;
	if (smalti_queue_open(&batch->queue, model->session, max, error) == 0)
		batch->texts = smalti_texts_new(model, batch->queue.cancelled, error);
	if (smalti_ranks_agree(batch->texts ? 0 : -1, NULL, error) < 0) {
		smalti_texts_free(batch->texts);
		smalti_queue_close(&batch->queue);
		free(batch);
		return NULL;
	}
	batch->queue.progress = smalti_batch_report;
	batch->queue.user = batch;
	return batch;
}

void smalti_batch_set_callback(struct smalti_batch *batch,
			       void (*on_progress)(void *user, const struct smalti_batch_progress *progress),
			       void *user)
{
	batch->on_progress = on_progress;
	batch->user = user;
}

void smalti_batch_wait(struct smalti_batch *batch)
{
	smalti_queue_drain(&batch->queue);
}

void smalti_batch_cancel(struct smalti_batch *batch)
{
	smalti_queue_cancel(&batch->queue);
}

void smalti_batch_await_room(struct smalti_batch *batch)
{
	struct smalti_throttle *throttle = &batch->model->session->throttle;
	smalti_insertion_begin(throttle);
	smalti_queue_admit(&batch->queue, 0, INT64_MAX);
	smalti_insertion_end(throttle);
}

void smalti_batch_drop(struct smalti_batch *batch, bool (*unwanted)(void *user))
{
	HOLD(&batch->queue.mutex);
	for (struct smalti_job *job = batch->queue.oldest; job; job = job->next)
		if (unwanted(((struct smalti_image_job *)job)->receiver.user))
			smalti_task_group_cancel(job->task_group);
}

void smalti_batch_close(struct smalti_batch *batch)
{
	if (!batch)
		return;
	if (smalti_ranks_own() == 0)
		smalti_broadcast_end();
	smalti_batch_wait(batch);
	smalti_ranks_settle();
	smalti_texts_free(batch->texts);
	smalti_queue_close(&batch->queue);
	free(batch);
}

/* Tells whether memory lacks room for one more image. */
static bool is_short_of_memory(const struct smalti_batch *batch, const struct smalti_plan *plan)
{
	return batch->queue.active_bytes + plan->bytes + smalti_texts_unused_bytes(batch->texts) >
	       smalti_memory_for_images(batch->model);
}

/* Waits until memory has room. */
static void admit(struct smalti_batch *batch, const struct smalti_plan *plan)
{
	smalti_queue_admit(&batch->queue, plan->bytes, smalti_memory_for_images(batch->model));
	if (smalti_ranks_count() == 1 && is_short_of_memory(batch, plan))
		smalti_texts_drop_unused(batch->texts);
}

static int get_texts(struct smalti_image_job *work, int64_t priority, struct smalti_error *error)
{
	const struct smalti_plan *plan = work->plan;
	const char *const prompts[2] = {plan->request.negative_prompt, plan->request.prompt};
	const int first = plan->guided ? 0 : 1;
	const struct smalti_text_request request = {.prompts = prompts + first,
						    .count = 2 - first,
						    .cleaning = plan->request.cleaning,
						    .strategy = &plan->strategy,
						    .variant = plan->variant,
						    .priority = priority};
	return smalti_texts_get(work->batch->texts, &request, work->texts + first, error);
}

/* Opens the resizer of an image, if it is resized. */
static int open_resizer(struct smalti_image_job *work, struct smalti_error *error)
{
	const struct smalti_plan *plan = work->plan;
	if (plan->made_width == plan->request.width && plan->made_height == plan->request.height)
		return 0;
	work->resizer = smalti_interpolator_new(plan->made_height, plan->made_width, plan->request.height,
						plan->request.width, error);
	return work->resizer ? 0 : -1;
}

static int prepare(struct smalti_image_job *work, struct smalti_error *error)
{
	struct smalti_batch *batch = work->batch;
	struct smalti_model *model = batch->model;
	const struct smalti_plan *plan = work->plan;
	const int64_t submitted = batch->queue.submitted, turn = batch->turn ? batch->turn : submitted;
	char name[32];
	snprintf(name, sizeof(name), "image %lld", (long long)submitted);
	admit(batch, plan);
	if (get_texts(work, -turn, error) < 0 || open_resizer(work, error) < 0)
		return -1;
	work->latent_shape[0] = model->denoiser->in_channels;
	work->latent_shape[1] = plan->latent_height;
	work->latent_shape[2] = plan->latent_width;
	if (smalti_image_estimate(work, error) < 0)
		return -1;
	work->job.bytes = plan->bytes;
	work->job.complete = complete;
	work->job.ahead = submitted - turn;
	if (smalti_job_open(&batch->queue, &work->job, name, error) < 0)
		return -1;
	smalti_task_group_depends_on(work->job.task_group, model->task_group);
	for (int i = 0; i < 2; i++)
		if (work->texts[i])
			smalti_task_group_depends_on(work->job.task_group, work->texts[i]->task_group);
	return 0;
}

/* Returns a new image; NULL if it cannot be made. */
static struct smalti_image_job *new_image(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
					  const struct smalti_image_callbacks *receiver,
					  struct smalti_error *error)
{
	if (!plan || smalti_task_group_status(batch->queue.cancelled, error) < 0 ||
	    smalti_plan_check_memory(plan, error) < 0)
		return NULL;
	if (batch->refuses) {
		smalti_fail(error, SMALTI_ECANCELLED, "%s", batch->refuses);
		return NULL;
	}
	struct smalti_image_job *work = smalti_calloc(1, sizeof(*work), error);
	if (!work)
		return NULL;
	work->batch = batch;
	work->image = image;
	work->plan = smalti_plan_share(plan);
	work->receiver = *receiver;
	return work;
}

static void exchange_failures(void *queue)
{
	smalti_queue_exchange_failures(queue);
}

/* Makes all ranks make the image, with the same tasks, or none. */
static int agree(struct smalti_batch *batch, const struct smalti_image_job *work, struct smalti_error *error)
{
	struct smalti_ranks_vote vote = {.idle = exchange_failures, .user = &batch->queue};
	if (smalti_ranks_count() > 1 && work) {
		vote.digest = smalti_plan_digest(work->plan) ^ batch->model->session->sequence;
		vote.any = smalti_texts_any_failed(batch->texts) || is_short_of_memory(batch, work->plan);
	}
	if (smalti_ranks_agree(work ? 0 : -1, &vote, error) < 0)
		return -1;
	if (vote.any)
		smalti_texts_forget(batch->texts);
	return 0;
}

static int submit(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
		  const struct smalti_image_callbacks *receiver, struct smalti_error *error)
{
	struct smalti_image_job *work = new_image(batch, plan, image, receiver, error);
	int status = agree(batch, work, error);
	if (status == 0 && (status = prepare(work, error)) < 0)
		smalti_ranks_give_up(error);
	if (status < 0) {
		if (work)
			free_image(work);
		return -1;
	}
	smalti_image_insert(work);
	return 0;
}

static int check(const struct smalti_batch *batch, const struct smalti_plan *plan, int64_t image,
		 const struct smalti_image_callbacks *callbacks, struct smalti_error *error)
{
	if (smalti_check_given(batch, "batch", error) < 0 || smalti_check_given(plan, "plan", error) < 0 ||
	    smalti_check_range(image, 0, plan->request.images - 1, "image", error) < 0 ||
	    smalti_check_given(callbacks, "callbacks", error) < 0 ||
	    smalti_check_given((const void *)(intptr_t)callbacks->done, "the callbacks' function 'done'",
			       error) < 0)
		return -1;
	if (plan->model != batch->model)
		return smalti_fail(error, SMALTI_EINVAL,
				   "plan: expected one of the batch's model, found "
				   "another model's");
	return 0;
}

int smalti_batch_submit(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
			const struct smalti_image_callbacks *callbacks, struct smalti_error *error)
{
	SMALTI_REPORT(error);
	if (check(batch, plan, image, callbacks, error) < 0)
		return -1;
	struct smalti_throttle *throttle = &batch->model->session->throttle;
	smalti_insertion_begin(throttle);
	smalti_broadcast_image(&plan->request, image, callbacks);
	const int status = submit(batch, plan, image, callbacks, error);
	smalti_insertion_end(throttle);
	return status;
}

int smalti_batch_submit_in_turn(struct smalti_batch *batch, struct smalti_plan *plan, int64_t image,
				const struct smalti_image_callbacks *callbacks, int64_t turn,
				struct smalti_error *error)
{
	batch->turn = turn;
	return smalti_batch_submit(batch, plan, image, callbacks, error);
}

static void serve(void *batch)
{
	smalti_queue_serve(&((struct smalti_batch *)batch)->queue);
}

static void ignore_done(void *user, int status, const struct smalti_error *error)
{
	(void)user, (void)status, (void)error; /* rank 0 hears of it */
}

static int ignore_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		       struct smalti_error *error)
{
	(void)user, (void)first, (void)count, (void)rgb, (void)error; /* rank 0 gets them */
	return 0;
}

static void make_received(struct smalti_batch *batch, struct smalti_broadcast *message)
{
	struct smalti_throttle *throttle = &batch->model->session->throttle;
	struct smalti_error error = SMALTI_NO_ERROR;
	const struct smalti_image_callbacks callbacks = {.rows = message->rows ? ignore_rows : NULL,
							 .done = ignore_done};
	struct smalti_plan *plan = smalti_request_resolve(batch->model, &message->request, &error);
	smalti_insertion_begin(throttle);
	submit(batch, plan, message->image, &callbacks, &error); /* a failure occurs on all ranks */
	smalti_insertion_end(throttle);
	smalti_plan_free(plan);
}

void smalti_batch_refuse(struct smalti_batch *batch, const char *cause)
{
	batch->refuses = cause;
}

void smalti_batch_follow(struct smalti_batch *batch)
{
	for (bool ends = false; !ends;) {
		struct smalti_broadcast *message = smalti_broadcast_receive(serve, batch);
		ends = message->ends;
		if (!ends)
			make_received(batch, message);
		free(message);
	}
}
