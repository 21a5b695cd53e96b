/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "image/image_writer.h"
#include "jobs/batch.h"
#include "jobs/plan.h"
#include "serve/serve.h"

static void free_image(struct smalti_serve_image *image)
{
	smalti_image_abort(image->writer);
	if (image->stream)
		fclose(image->stream);
	free(image->parameters);
	free(image->steps);
	free(image->data);
}

static void free_job(struct smalti_serve_job *job)
{
	for (int64_t i = 0; job->images && i < job->request.request.images; i++)
		free_image(&job->images[i]);
	free(job->images);
	free(job->events);
	smalti_plan_free(job->plan);
	smalti_serve_request_free(&job->request);
	free(job);
}

void smalti_serve_job_release(struct smalti_serve_job *job)
{
	if (--job->references == 0)
		free_job(job);
}

static int prepare(struct smalti_serve_job *job, struct smalti_error *error)
{
	struct smalti_server *server = job->server;
	struct smalti_request *request = &job->request.request;
	job->plan = smalti_request_resolve(server->model, request, error);
	if (job->plan && smalti_plan_check_memory(job->plan, error) < 0) {
		error->code = SMALTI_EINVAL; /* it never fits: no reason to ask again */
		return -1;
	}
	job->images = job->plan ? smalti_calloc(request->images, sizeof(*job->images), error) : NULL;
	if (!job->images)
		return -1;
	request->strategy = smalti_plan_strategy(job->plan);
	request->shares = smalti_plan_shares(job->plan);
	request->lora = smalti_plan_lora(job->plan);
	request->step_cache = smalti_plan_step_cache(job->plan);
	for (int64_t i = 0; i < request->images; i++) {
		struct smalti_serve_image *image = &job->images[i];
		image->job = job;
		image->number = i;
		image->parameters = smalti_image_parameters(request, i, &server->origin, error);
		if (!image->parameters)
			return -1;
	}
	smalti_serve_request_free_pictures(&job->request); /* the plan has them in the size that is made */
	return 0;
}

struct smalti_serve_job *smalti_serve_job_new(struct smalti_server *server,
					      struct smalti_serve_request *request,
					      struct smalti_error *error)
{
	struct smalti_serve_job *job = smalti_calloc(1, sizeof(*job), error);
	if (!job)
		return NULL;
	job->server = server;
	job->request = *request;
	*request = (struct smalti_serve_request){0}; /* it is the job's */
	job->references = 1;
	job->began = smalti_now();
	if (prepare(job, error) < 0) {
		free_job(job);
		return NULL;
	}
	job->left = job->waiting.images = job->request.request.images;
	return job;
}

/* Wakes the connection to write. The server's mutex is held. */
static void wake(struct smalti_serve_job *job)
{
	if (!job->connection || !job->suspended)
		return;
	job->suspended = false;
	MHD_resume_connection(job->connection);
}

/* Takes the text. */
static void add_event(struct smalti_serve_job *job, char *event)
{
	if (!job->request.stream || !job->connection || !event) {
		free(event);
		return;
	}
	char *both = job->events ? smalti_format(NULL, "%s%s", job->events + job->sent, event) : event;
	if (both != event)
		free(event);
	if (!both)
		return;
	free(job->events);
	job->events = both;
	job->sent = 0;
	wake(job);
}

void smalti_serve_job_comment(struct smalti_serve_job *job)
{
	add_event(job, smalti_format(NULL, ":\n\n"));
}

/* Takes the job's waiting images out of the queue. */
static void withdraw(struct smalti_serve_job *job)
{
	struct smalti_server *server = job->server;
	if (!smalti_serve_queue_leave(&server->queue, &job->waiting))
		return;
	server->metrics.dropped += job->waiting.images;
	job->references--; /* the caller has one, too */
}

/* Ends a job, once, with the mutex held. */
static void end(struct smalti_serve_job *job, const struct smalti_error *error)
{
	struct smalti_server *server = job->server;
	job->ended = true;
	if (error) {
		job->error = *error;
		add_event(job, smalti_serve_error_event(error));
		withdraw(job);
	}
	smalti_serve_metrics_request(&server->metrics, smalti_now() - job->began);
	if (job->peer)
		smalti_serve_peer_expect(job->peer, SMALTI_SERVE_IMAGE_SECONDS);
	wake(job);
}

void smalti_serve_job_drop(struct smalti_serve_job *job)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_fail(&error, SMALTI_ECANCELLED, "the client has closed the connection");
	job->gone = true;
	if (!job->ended)
		end(job, &error);
}

void smalti_serve_jobs_refuse(struct smalti_server *server)
{
	struct smalti_error closing = SMALTI_NO_ERROR;
	smalti_fail(&closing, SMALTI_ECANCELLED, "the server is closing");
	server->closing = true;
	for (struct smalti_serve_waiting *next; (next = smalti_serve_queue_untouched(&server->queue));) {
		struct smalti_serve_job *job = (struct smalti_serve_job *)(void *)next;
		job->references++;
		end(job, &closing);
		smalti_serve_job_release(job);
	}
}

static int begin_png(struct smalti_serve_image *image, struct smalti_error *error)
{
	const struct smalti_request *request = &image->job->request.request;
	image->stream = open_memstream(&image->data, &image->size);
	if (!image->stream)
		return smalti_fail_errno(error, "an image cannot be kept in memory");
	image->writer = smalti_image_begin_png(image->stream, "the image", request->width, request->height,
					       image->parameters, image->steps, error);
	return image->writer ? 0 : -1;
}

static int on_rows(void *user, int64_t first, int64_t count, const unsigned char *rgb,
		   struct smalti_error *error)
{
	struct smalti_serve_image *image = user;
	if (!image->stream && begin_png(image, error) < 0)
		return -1;
	return image->writer ? smalti_image_write_rows(image->writer, first, count, rgb, error) : -1;
}

static void on_steps(void *user, const struct smalti_step_report *report)
{
	struct smalti_serve_image *image = user;
	image->steps = smalti_image_steps(report);
}

static void on_progress(void *user, const struct smalti_batch_progress *progress)
{
	const struct smalti_serve_image *image = user;
	struct smalti_serve_job *job = image->job;
	HOLD_MUTEX(&job->server->mutex);
	if (job->request.stream && !job->events) /* else the client is behind */
		add_event(job, smalti_serve_progress_event(image, progress));
}

static int end_png(struct smalti_serve_image *image, struct smalti_error *error)
{
	if (smalti_image_finish(image->writer, error) < 0)
		return -1;
	smalti_image_abort(image->writer);
	image->writer = NULL;
	const int status = fclose(image->stream);
	image->stream = NULL;
	return status ? smalti_fail(error, SMALTI_ENOMEM, "no memory for an image") : 0;
}

static void count_image(struct smalti_serve_job *job, int status, enum smalti_code code)
{
	struct smalti_serve_metrics *metrics = &job->server->metrics;
	if (status == 0)
		metrics->made++;
	else if (code == SMALTI_ECANCELLED)
		metrics->dropped++;
	else
		metrics->failed++;
}

static void on_done(void *user, int status, const struct smalti_error *cause)
{
	struct smalti_serve_image *image = user;
	struct smalti_serve_job *job = image->job;
	struct smalti_error error = *cause;
	if (status == 0)
		status = end_png(image, &error);
	HOLD_MUTEX(&job->server->mutex);
	job->server->active--;
	smalti_serve_queue_done(&job->server->queue, &job->waiting, image->turn);
	count_image(job, status, error.code);
	if (status == 0 && job->request.stream && job->connection)
		add_event(job, smalti_serve_image_event(image));
	if (!job->ended && (status < 0 || job->left == 1))
		end(job, status < 0 ? &error : NULL);
	job->left--;
	smalti_serve_job_release(job);
}

/* Waits a tenth of a second for an image whose turn it is, which has a reference to its job. */
static struct smalti_serve_image *take_image(struct smalti_server *server)
{
	enum { TENTH = 100000000 };
	const struct timespec deadline = smalti_deadline(TENTH);
	HOLD_MUTEX(&server->mutex);
	struct smalti_serve_waiting *waiting = smalti_serve_queue_take(&server->queue);
	if (!waiting) {
		pthread_cond_clockwait(&server->queue.any, &server->mutex, CLOCK_MONOTONIC, &deadline);
		waiting = smalti_serve_queue_take(&server->queue);
	}
	if (!waiting)
		return NULL;
	struct smalti_serve_job *job = (struct smalti_serve_job *)(void *)waiting;
	job->references += waiting->images > 0; /* the last image has the queue's */
	server->active++;
	smalti_serve_wake_workers(server);
	struct smalti_serve_image *image = &job->images[waiting->taken - 1];
	image->turn = waiting->turn;
	return image;
}

bool smalti_serve_is_unwanted(void *image)
{
	const struct smalti_serve_job *job = ((const struct smalti_serve_image *)image)->job;
	HOLD_MUTEX(&job->server->mutex);
	return job->ended;
}

static int submit_image(struct smalti_serve_image *image, struct smalti_error *error)
{
	static const struct smalti_image_callbacks callbacks = {
	    .rows = on_rows, .steps = on_steps, .progress = on_progress, .done = on_done};
	struct smalti_image_callbacks own = callbacks;
	struct smalti_serve_job *job = image->job;
	own.user = image;
	if (smalti_serve_is_unwanted(image))
		return smalti_fail(error, SMALTI_ECANCELLED, "nobody waits for the image");
	return smalti_batch_submit_in_turn(job->server->batch, job->plan, image->number, &own, image->turn,
					   error);
}

bool smalti_serve_is_over(struct smalti_server *server)
{
	HOLD_MUTEX(&server->mutex);
	return server->stopping && server->queue.waiting == 0;
}

void *smalti_serve_submit(void *user)
{
	struct smalti_server *server = user;
	while (!smalti_serve_is_over(server)) {
		struct smalti_error error = SMALTI_NO_ERROR;
		smalti_batch_await_room(server->batch); /* the turn is decided when there is room */
		struct smalti_serve_image *image = take_image(server);
		if (image && submit_image(image, &error) < 0)
			on_done(image, -1, &error);
	}
	return NULL;
}
