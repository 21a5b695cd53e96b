/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve.h"
#include "base/clock.h"
#include "base/file.h"
#include "cli/common_rows.h"
#include "cli/signals.h"
#include "jobs/batch.h"
#include "jobs/precision.h"
#include "rt/recent.h"

#include <signal.h>

#define TYPE struct smalti_serve_options

static const struct smalti_option rows[] = {
    {SMALTI_GROUP("Server")},
    {SMALTI_STRING(TYPE, listen), "listen", 'l', "ADDRESS:PORT",
     "listen there; port 0: one that is free; an address that other machines reach needs --token-file"},
    {SMALTI_STRING(TYPE, token_file), "token-file", 0, "FILE",
     "answer only requests with \"Authorization: Bearer TOKEN\", where TOKEN is the first line of FILE"},
    {SMALTI_FLAG(TYPE, quiet), "quiet", 'q', NULL, "print errors only"},

    {SMALTI_GROUP("Limits")},
    {SMALTI_INT64(TYPE, limits.waiting), "max-waiting", 0, "N",
     "images that may wait; beyond them requests are answered by 503", .minimum = 1, .maximum = 1000000},
    {SMALTI_INT64(TYPE, limits.of_client), "max-waiting-of-client", 0, "N",
     "images of one address that may wait; beyond them its requests are answered by 429", .minimum = 1,
     .maximum = 1000000},
    {SMALTI_INT64(TYPE, limits.rate), "rate", 0, "N",
     "requests for images that one address may make in a minute; 0: any number", .minimum = 0,
     .maximum = 1000000},
    {SMALTI_SIZE(TYPE, width, height), "max-size", 0, "WxH", "largest images", .minimum = SMALTI_SIDE_MIN,
     .maximum = SMALTI_SIDE_MAX},
    {SMALTI_INT64(TYPE, steps), "max-steps", 0, "N", "most steps of an image", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX},
    {SMALTI_INT64(TYPE, images), "max-images", 0, "N", "most images of a request", .minimum = 1,
     .maximum = 1000},

    {SMALTI_GROUP("What a request does not say")},
    {SMALTI_INT64(TYPE, request.steps), "steps", 0, "N", "number of denoising steps", .minimum = 1,
     .maximum = SMALTI_STEPS_MAX, .alias = "num-inference-steps"},
    {SMALTI_DOUBLE(TYPE, request.guidance), "guidance", 'g', "X", "classifier-free guidance scale",
     .least = 0, .most = 1000, .alias = "guidance-scale"},
    SMALTI_CLEANING_ROW(TYPE, request.cleaning, "prompts"),

    {SMALTI_GROUP("Model")},
    {SMALTI_STRING(TYPE, model.directory), "model", 'm', "DIR",
     "directory of a PixArt pipeline in diffusers' layout; default: the embedded model"},
    SMALTI_VARIANT_ROW(TYPE, model.variant),
    SMALTI_PRECISION_ROW(TYPE, model.precision),

    {SMALTI_GROUP("Machine")},
    SMALTI_SESSION_ROWS(TYPE),
    SMALTI_TOKEN_SHARES_ROW(TYPE, request.shares),
    SMALTI_STRATEGY_ROW(TYPE, request.strategy),
};

static const struct smalti_serve_options defaults = {
    .listen = "127.0.0.1:8000",
    .width = 2048,
    .height = 2048,
    .steps = 100,
    .images = 10,
    .limits = {.waiting = 256, .of_client = 64},
    .request = {.images = 1, .steps = 20, .guidance = 4.5, .cleaning = SMALTI_CLEANING_BASIC},
    .session = {.cuda = -1},
};

static const struct smalti_example examples[] = {
    {"Serve the embedded model, then open http://127.0.0.1:8000 in a browser", "smalti serve"},
    {"Ask for an image",
     "curl -H 'Content-Type: application/json' -H 'Accept: image/png' -d '{\"prompt\": \"a red star\"}' -o "
     "star.png "
     "http://127.0.0.1:8000/v1/images/generations"},
    {"Serve other machines, too", "smalti serve --listen 0.0.0.0:8000 --token-file token.txt --rate 60"},
    {NULL, NULL},
};

const struct smalti_command smalti_serve_command = {
    .name = "smalti serve",
    .summary = "generate images for requests over HTTP",
    .operands = "",
    .description =
	"Answers requests for images: POST /v1/images/generations takes the JSON of OpenAI's image API with "
	"the names of diffusers besides (docs/serve.md). Many requests are computed at the same time; those "
	"that wait take turns by address. GET / is a page to try it, /health and /metrics are for "
	"monitoring.\n\nAfter SIGINT or SIGTERM the images in progress are finished and sent; requests that "
	"wait are answered by 503; a second signal drops them.",
    SMALTI_COMMAND_TABLES(rows, examples, defaults),
    .run = smalti_serve_run,
    .alone = true,
};

/* The first line, which has to be there. */
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

static int open_address(struct smalti_server *server, struct smalti_serve_address *address,
			struct smalti_error *error)
{
	const struct smalti_serve_options *options = server->options;
	if (smalti_serve_address_read(address, options->listen, error) < 0)
		return -1;
	if (options->token_file) {
		server->token = read_token(options->token_file, error);
		return server->token ? 0 : -1;
	}
	if (address->local)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "--listen %s: other machines reach that address: give a --token-file, too",
			   options->listen);
}

/* The last name in `path` up to `end`. */
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
	server->session = smalti_held_session(&server->options->session, error);
	if (!server->session || smalti_recent_keep(server->session, TASKS_SHOWN, error) < 0)
		return -1;
	server->model = smalti_model_open(server->session, &server->options->model, error);
	server->batch = server->model ? smalti_batch_open(server->model, error) : NULL;
	if (!server->batch)
		return -1;
	/* A place is left for who comes next, however long the images of one client take. */
	server->queue.limits.in_work = server->batch->queue.max_jobs - 1;
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

/* Threads that never receive a signal: the main thread does. */
static int start_threads(struct smalti_server *server, const struct smalti_serve_address *address,
			 struct smalti_error *error)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int status = smalti_serve_open_http(server, address, error);
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

static void cancel(void *batch)
{
	smalti_batch_cancel(batch);
}

void smalti_serve_wake_workers(struct smalti_server *server)
{
	if (server->asleep)
		smalti_session_wake(server->session);
	server->asleep = false;
}

/* Workers that look for tasks take the processors from others, so they sleep once there are none for a
 * second. Whether images are in work. */
static bool is_active(struct smalti_server *server, double since)
{
	HOLD_MUTEX(&server->mutex);
	if (server->active == 0 && !server->asleep && smalti_now() - since > 1) {
		smalti_session_sleep(server->session);
		server->asleep = true;
	}
	return server->active > 0;
}

/* Completes images until a signal comes. */
static void serve(struct smalti_server *server)
{
	enum { HUNDREDTH = 10000 };
	double since = smalti_now();
	smalti_signals_second(cancel, server->batch);
	while (!smalti_signals_caught()) {
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
	smalti_signals_second(NULL, NULL);
}

static void say_address(const struct smalti_server *server)
{
	const char *text = server->options->listen;
	if (server->options->quiet)
		return;
	printf("listening on http://%.*s:%d\n", (int)(strrchr(text, ':') - text), text,
	       smalti_serve_port(server));
	fflush(stdout);
}

static int run(struct smalti_server *server, struct smalti_error *error)
{
	struct smalti_serve_address address;
	if (open_address(server, &address, error) < 0)
		return -1;
	server->model_name = name_model(server->options, error);
	if (open_model(server, error) < 0 || start_threads(server, &address, error) < 0)
		return -1;
	say_address(server);
	serve(server);
	finish(server);
	return 0;
}

enum smalti_exit smalti_serve_run(void *options, int count, char **operands)
{
	struct smalti_server server = {.options = options, .started = smalti_wall_clock()};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count > 0)
		return smalti_usage_error(&smalti_serve_command, "unexpected operand '%.99s'", operands[0]);
	smalti_signals_catch();
	pthread_mutex_init(&server.mutex, NULL);
	smalti_serve_queue_open(&server.queue, &server.options->limits);
	enum smalti_exit status = SMALTI_EXIT_OK;
	if (run(&server, &error) < 0)
		status = smalti_command_fail(&smalti_serve_command, &error);
	smalti_batch_close(server.batch);
	smalti_model_close(server.model);
	error = (struct smalti_error)SMALTI_NO_ERROR;
	if (smalti_session_close(server.session, &error) < 0)
		status = smalti_command_fail(&smalti_serve_command, &error);
	smalti_serve_queue_close(&server.queue);
	pthread_mutex_destroy(&server.mutex);
	free((char *)(uintptr_t)server.model_name);
	free(server.token);
	return status;
}
