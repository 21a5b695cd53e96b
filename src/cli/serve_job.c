/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "cli/serve.h"
#include "cli/signals.h"
#include "image/image_writer.h"

static const char closed[] = "the client has closed the connection";

static void free_image(struct smalti_serve_image *image)
{
	smalti_image_abort(image->writer);
	if (image->stream)
		fclose(image->stream);
	free(image->parameters);
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
	job->images = job->plan ? smalti_calloc(request->images, sizeof(*job->images), error) : NULL;
	if (!job->images)
		return -1;
	request->strategy = smalti_plan_strategy(job->plan);
	request->shares = smalti_plan_shares(job->plan);
	for (int64_t i = 0; i < request->images; i++) {
		struct smalti_serve_image *image = &job->images[i];
		image->job = job;
		image->number = i;
		image->parameters = smalti_image_parameters(request, i, &server->origin, error);
		if (!image->parameters)
			return -1;
	}
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

/* There is something to write. The server's mutex is held. */
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

static void end(struct smalti_serve_job *job, const struct smalti_error *error)
{
	struct smalti_server *server = job->server;
	job->ended = true;
	if (error) {
		job->error = *error;
		add_event(job, smalti_serve_error_event(error));
	}
	smalti_serve_metrics_request(&server->metrics, smalti_now() - job->began);
	wake(job);
}

void smalti_serve_job_fail(struct smalti_serve_job *job, const struct smalti_error *error)
{
	HOLD_MUTEX(&job->server->mutex);
	if (!job->ended)
		end(job, error);
	smalti_serve_job_release(job);
}

/* Whether the peer has closed the connection, which the HTTP library does not look at while it waits. The
 * mutex is held. */
static bool is_wanted(struct smalti_serve_job *job)
{
	char byte;
	const union MHD_ConnectionInfo *info =
	    job->connection ? MHD_get_connection_info(job->connection, MHD_CONNECTION_INFO_CONNECTION_FD)
			    : NULL;
	return info && recv(info->connect_fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) != 0;
}

/* What the callbacks of an image that nobody waits for fail with. */
static int check_wanted(struct smalti_serve_image *image, struct smalti_error *error)
{
	HOLD_MUTEX(&image->job->server->mutex);
	return is_wanted(image->job) ? 0 : smalti_fail(error, SMALTI_ECANCELLED, "%s", closed);
}

static int on_latents(void *user, const int64_t shape[3], const float *values, struct smalti_error *error)
{
	(void)shape, (void)values;
	return check_wanted(user, error);
}

static int begin_png(struct smalti_serve_image *image, struct smalti_error *error)
{
	const struct smalti_request *request = &image->job->request.request;
	image->stream = open_memstream(&image->data, &image->size);
	if (!image->stream)
		return smalti_fail_errno(error, "an image cannot be kept in memory");
	image->writer = smalti_image_begin_png(image->stream, "the image", request->width, request->height,
					       image->parameters, error);
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

static void on_progress(void *user, const struct smalti_batch_progress *progress)
{
	const struct smalti_serve_image *image = user;
	struct smalti_serve_job *job = image->job;
	HOLD_MUTEX(&job->server->mutex);
	if (job->request.stream && !job->events) /* else who reads is behind */
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
	count_image(job, status, error.code);
	if (status == 0 && job->request.stream && job->connection)
		add_event(job, smalti_serve_image_event(image));
	if (!job->ended && (status < 0 || job->left == 1))
		end(job, status < 0 ? &error : NULL);
	job->left--;
	smalti_serve_job_release(job);
}

/* Whether an image is to be submitted, which then has a reference to its job. A job that nobody waits for
 * ends, so that the HTTP library looks at its connection. */
static bool claim_image(struct smalti_serve_job *job, int64_t image)
{
	struct smalti_server *server = job->server;
	struct smalti_error error = SMALTI_NO_ERROR;
	HOLD_MUTEX(&server->mutex);
	if (job->ended)
		return false;
	if (is_wanted(job)) {
		job->references++;
		server->active++;
		smalti_serve_wake_workers(server);
		return true;
	}
	server->metrics.dropped += job->request.request.images - image;
	smalti_fail(&error, SMALTI_ECANCELLED, "%s", closed);
	end(job, &error);
	return false;
}

/* -1: the job has ended. */
static int submit_image(struct smalti_serve_job *job, int64_t image)
{
	static const struct smalti_image_callbacks callbacks = {
	    .rows = on_rows, .latents = on_latents, .progress = on_progress, .done = on_done};
	struct smalti_server *server = job->server;
	struct smalti_image_callbacks own = callbacks;
	struct smalti_error error = SMALTI_NO_ERROR;
	own.user = &job->images[image];
	if (!claim_image(job, image))
		return -1;
	if (smalti_batch_submit(server->batch, job->plan, image, &own, &error) == 0)
		return 0;
	HOLD_MUTEX(&server->mutex);
	server->active--;
	server->metrics.failed++;
	if (!job->ended)
		end(job, &error);
	job->references--; /* the submitter has one, too */
	return -1;
}

void *smalti_serve_submit(void *user)
{
	struct smalti_server *server = user;
	while (!smalti_signals_caught()) {
		struct smalti_serve_job *job =
		    (struct smalti_serve_job *)(void *)smalti_serve_queue_take(&server->queue);
		int64_t image = 0;
		while (job && image < job->request.request.images && submit_image(job, image) == 0)
			image++;
		if (job) {
			HOLD_MUTEX(&server->mutex);
			smalti_serve_job_release(job);
		}
	}
	return NULL;
}
