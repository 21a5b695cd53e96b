/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "jobs/batch.h"
#include "jobs/precision.h"
#include "serve/serve.h"
#include "trace/recent.h"

#include <signal.h>

/* Returns the first line, which has to be there. */
static char *read_token(const char *path, struct smalti_error *error)
{
	enum { LONGEST = 4096, LEAST = 8 };
	size_t length;
	char *text = smalti_file_read(path, LONGEST, &length, error);
	if (!text)
		return NULL;
	text[strcspn(text, "\r\n")] = '\0';
	if (strlen(text) >= LEAST)
		return text;
	smalti_fail(error, SMALTI_EINVAL, "%s: its first line is to be a token of %d characters or more",
		    path, LEAST);
	free(text);
	return NULL;
}

int smalti_server_prepare(struct smalti_server *server, struct smalti_error *error)
{
	const struct smalti_serve_options *options = server->options;
	pthread_mutex_init(&server->mutex, NULL);
	smalti_serve_queue_open(&server->queue, &options->limits);
	if (smalti_serve_loras_check(&options->loras, error) < 0 ||
	    smalti_serve_address_read(&server->address, options->listen, error) < 0)
		return -1;
	if (options->token_file) {
		server->token = read_token(options->token_file, error);
		return server->token ? 0 : -1;
	}
	if (server->address.local)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "--listen %s: other machines reach that address: give a --token-file, too",
			   options->listen);
}

/* Returns where the last name in `path` up to `end` begins. */
static const char *last_name(const char *path, const char *end)
{
	while (end > path && end[-1] != '/')
		end--;
	return end;
}

char *smalti_serve_model_name(const char *path, struct smalti_error *error)
{
	static const char snapshots[] = "snapshots/", models[] = "models--";
	const char *name = last_name(path, path + strlen(path));
	const char *above = name > path ? last_name(path, name - 1) : name;
	const char *hub = above > path ? last_name(path, above - 1) : above;
	if (strncmp(above, snapshots, strlen(snapshots)) != 0 || strncmp(hub, models, strlen(models)) != 0)
		return smalti_format(error, "%s", name);
	hub += strlen(models);
	char *text = smalti_format(error, "%.*s", (int)(above - 1 - hub), hub);
	for (char *dashes; text && (dashes = strstr(text, "--"));) {
		*dashes = '/';
		memmove(dashes + 1, dashes + 2, strlen(dashes + 2) + 1);
	}
	return text;
}

static char *name_model(const struct smalti_serve_options *options, struct smalti_error *error)
{
	const char *path = options->model.directory ? options->model.directory : smalti_embedded_model(error);
	char *whole = path ? realpath(path, NULL) : NULL;
	char *name = whole ? smalti_serve_model_name(whole, error) : NULL;
	free(whole);
	return name;
}

static int open_model(struct smalti_server *server, struct smalti_error *error)
{
	enum { TASKS_SHOWN = 8192 };
	struct smalti_model_info info;
	if (smalti_recent_keep(server->session, TASKS_SHOWN, error) < 0)
		return -1;
	server->model = smalti_model_open(server->session, &server->options->model, error);
	if (!server->model || smalti_serve_loras_open(server->model, &server->options->loras, error) < 0)
		return -1;
	server->batch = smalti_batch_open(server->model, error);
	if (!server->batch)
		return -1;
	/* A place is left for the next client, however long the images of one take. */
	server->queue.limits.active = server->batch->queue.max_jobs - 1;
	smalti_model_info(server->model, &info);
	server->origin =
	    (struct smalti_image_origin){.model = info.digest,
					 .scheduler = info.scheduler,
					 .precision = smalti_precisions[server->options->model.precision]};
	return 0;
}

static void end_http(struct smalti_server *server)
{
	smalti_serve_close_http(server);
	pthread_mutex_lock(&server->mutex);
	server->over = true;
	pthread_mutex_unlock(&server->mutex);
	pthread_join(server->watcher, NULL);
}

/* Starts threads that never receive a signal: the main thread does. */
static int start_threads(struct smalti_server *server, struct smalti_error *error)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int status = smalti_serve_open_http(server, error);
	if (status == 0 && pthread_create(&server->watcher, NULL, smalti_serve_watch, server) != 0) {
		MHD_stop_daemon(server->daemon);
		status = smalti_fail(error, SMALTI_ENOMEM, "no thread can be started");
	}
	if (status == 0 && pthread_create(&server->submitter, NULL, smalti_serve_submit, server) != 0) {
		end_http(server);
		status = smalti_fail(error, SMALTI_ENOMEM, "no thread can be started");
	}
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return status;
}

int smalti_server_start(struct smalti_server *server, struct smalti_error *error)
{
	server->started = smalti_wall_clock();
	server->model_name = name_model(server->options, error);
	return open_model(server, error) < 0 ? -1 : start_threads(server, error);
}

void smalti_server_stop(void *server)
{
	((struct smalti_server *)server)->stopping = true;
}

void smalti_serve_wake_workers(struct smalti_server *server)
{
	if (server->asleep)
		smalti_session_wake(server->session);
	server->asleep = false;
}

/* Tells whether images are being made. Workers that look for tasks take the processors from others, so they
 * sleep once there are none for a second. */
static bool is_active(struct smalti_server *server, double since)
{
	HOLD_MUTEX(&server->mutex);
	if (server->active == 0 && !server->asleep && smalti_now() - since > 1) {
		smalti_session_sleep(server->session);
		server->asleep = true;
	}
	return server->active > 0;
}

/* Completes images until the server is told to stop and no request that has begun waits. */
static void serve(struct smalti_server *server)
{
	enum { HUNDREDTH = 10000 };
	double since = smalti_now();
	while (!smalti_serve_is_over(server)) {
		if (is_active(server, since)) {
			smalti_batch_wait(server->batch);
			since = smalti_now();
		} else {
			usleep(HUNDREDTH);
		}
	}
}

/* Finishes the requests that have begun; those that wait are refused meanwhile. */
static void finish(struct smalti_server *server)
{
	pthread_mutex_lock(&server->mutex);
	smalti_serve_wake_workers(server);
	pthread_mutex_unlock(&server->mutex);
	pthread_join(server->submitter, NULL);
	smalti_batch_wait(server->batch);
	end_http(server);
}

void smalti_server_work(struct smalti_server *server)
{
	serve(server);
	finish(server);
}

int smalti_server_close(struct smalti_server *server, struct smalti_error *error)
{
	smalti_batch_close(server->batch);
	smalti_model_close(server->model);
	const int status = smalti_session_close(server->session, error);
	smalti_serve_queue_close(&server->queue);
	pthread_mutex_destroy(&server->mutex);
	free((char *)(uintptr_t)server->model_name);
	free(server->token);
	return status;
}
