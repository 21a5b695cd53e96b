/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "base/parse.h"
#include "serve/serve.h"

#include <stdarg.h>
#include <sys/random.h>

/* src/serve/page.html. */
__asm__(".pushsection .rodata\n"
	".local smalti_serve_page\n"
	"smalti_serve_page: .incbin \"src/serve/page.html\"\n"
	".byte 0\n"
	".popsection\n");
extern const char smalti_serve_page[] __attribute__((visibility("hidden")));

enum {
	MAX_BODY = 256 << 10,
	MAX_FORM = 12 << 20, /* a body with pictures */
	MAX_PASSED_OVER = 16 << 20,
	MAX_WAITING = SMALTI_SERVE_CONNECTIONS - 100,    /* so that others are answered meanwhile */
	MAX_CONNECTIONS = SMALTI_SERVE_CONNECTIONS + 40, /* with those that are being closed */
	IDLE_SECONDS = 120,
	SEED_BITS = 53 /* of a seed that is drawn: JSON's numbers keep them */
};

/* A request from its first line on, until its answer has been sent. */
struct exchange {
	const struct route *route;
	struct smalti_serve_body body;
	size_t passed_over; /* bytes of a body that is refused */
	bool complete;
	struct smalti_serve_refusal refusal; /* why its body is passed over */
};

/* A path, and what answers it once the body is there. */
struct route {
	const char *method, *path;
	enum MHD_Result (*answer)(struct smalti_server *server, struct MHD_Connection *connection,
				  struct exchange *exchange);
	bool open; /* without a token, too */
	/* Of images: the type and the most bytes of a body, and what reads it. */
	const char *type;
	size_t most;
	int (*read)(struct smalti_serve_request *request, const char *body, size_t length,
		    const struct smalti_serve_options *options, const char *model,
		    struct smalti_error *error);
};

static enum MHD_Result queue_response(struct smalti_server *server, struct MHD_Connection *connection,
				      unsigned status, const char *type, struct MHD_Response *response)
{
	if (!response)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (status == MHD_HTTP_UNAUTHORIZED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
	if (status == MHD_HTTP_TOO_MANY_REQUESTS || status == MHD_HTTP_SERVICE_UNAVAILABLE)
		MHD_add_response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "5");
	const enum MHD_Result result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	HOLD_MUTEX(&server->mutex);
	smalti_serve_metrics_answer(&server->metrics, status);
	return result;
}

/* Takes the text; without memory it closes the connection. */
static enum MHD_Result answer_text(struct smalti_server *server, struct MHD_Connection *connection,
				   unsigned status, const char *type, char *text)
{
	if (!text)
		return MHD_NO;
	struct MHD_Response *response =
	    MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE);
	if (!response)
		free(text);
	return queue_response(server, connection, status, type, response);
}

static const char json[] = "application/json";

static enum MHD_Result refuse(struct smalti_server *server, struct MHD_Connection *connection,
			      unsigned status, const char *format, ...) __attribute__((format(printf, 4, 5)));
static enum MHD_Result refuse(struct smalti_server *server, struct MHD_Connection *connection,
			      unsigned status, const char *format, ...)
{
	struct smalti_error error;
	va_list args;
	va_start(args, format);
	vsnprintf(error.message, sizeof(error.message), format, args);
	va_end(args);
	return answer_text(server, connection, status, json, smalti_serve_error_text(status, error.message));
}

static enum MHD_Result answer_page(struct smalti_server *server, struct MHD_Connection *connection,
				   struct exchange *exchange)
{
	(void)exchange;
	return queue_response(server, connection, MHD_HTTP_OK, "text/html; charset=utf-8",
			      MHD_create_response_from_buffer(strlen(smalti_serve_page),
							      (void *)(uintptr_t)smalti_serve_page,
							      MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result answer_health(struct smalti_server *server, struct MHD_Connection *connection,
				     struct exchange *exchange)
{
	(void)exchange;
	pthread_mutex_lock(&server->mutex);
	const bool closing = server->closing;
	pthread_mutex_unlock(&server->mutex);
	return answer_text(server, connection, closing ? MHD_HTTP_SERVICE_UNAVAILABLE : MHD_HTTP_OK, json,
			   smalti_format(NULL, "{\"status\":\"%s\"}\n", closing ? "closing" : "ok"));
}

static enum MHD_Result answer_metrics(struct smalti_server *server, struct MHD_Connection *connection,
				      struct exchange *exchange)
{
	(void)exchange;
	pthread_mutex_lock(&server->mutex);
	char *text = smalti_serve_metrics_text(server);
	pthread_mutex_unlock(&server->mutex);
	return answer_text(server, connection, MHD_HTTP_OK, "text/plain; version=0.0.4", text);
}

static enum MHD_Result answer_models(struct smalti_server *server, struct MHD_Connection *connection,
				     struct exchange *exchange)
{
	(void)exchange;
	return answer_text(server, connection, MHD_HTTP_OK, json, smalti_serve_models_text(server));
}

static enum MHD_Result answer_activity(struct smalti_server *server, struct MHD_Connection *connection,
				       struct exchange *exchange)
{
	(void)exchange;
	const char *from = MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, "from");
	struct smalti_error error = SMALTI_NO_ERROR;
	int64_t number = 0;
	if (from && smalti_parse_int64(from, 0, INT64_MAX, &number, &error) < 0)
		return refuse(server, connection, MHD_HTTP_BAD_REQUEST, "from: %s", error.message);
	return answer_text(server, connection, MHD_HTTP_OK, json, smalti_serve_activity(server, number));
}

/* Gives a stream's next bytes; while there are none, the connection sleeps. */
static ssize_t read_events(void *user, uint64_t position, char *to, size_t max)
{
	(void)position;
	struct smalti_serve_job *job = user;
	HOLD_MUTEX(&job->server->mutex);
	if (job->events) {
		const size_t left = strlen(job->events + job->sent), count = left < max ? left : max;
		memcpy(to, job->events + job->sent, count);
		job->sent += count;
		if (count == left) {
			free(job->events);
			job->events = NULL;
		}
		return (ssize_t)count;
	}
	if (job->ended)
		return MHD_CONTENT_READER_END_OF_STREAM;
	job->suspended = true;
	MHD_suspend_connection(job->connection);
	return 0;
}

static enum MHD_Result answer_stream(struct smalti_server *server, struct MHD_Connection *connection,
				     struct smalti_serve_job *job)
{
	enum { BLOCK = 1 << 16 };
	return queue_response(
	    server, connection, MHD_HTTP_OK, "text/event-stream",
	    MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK, read_events, job, NULL));
}

/* Lets the connection sleep until the job has ended. This is the second call for it: the library reads from
 * one that was put to sleep in the first, once it wakes, and so gives no answer to a client that has closed
 * its sending half. */
static bool sleeps(struct smalti_server *server, struct smalti_serve_job *job)
{
	HOLD_MUTEX(&server->mutex);
	if (job->ended)
		return false;
	job->suspended = true;
	MHD_suspend_connection(job->connection);
	return true;
}

static enum MHD_Result answer_job(struct smalti_server *server, struct MHD_Connection *connection,
				  struct smalti_serve_job *job)
{
	if (sleeps(server, job))
		return MHD_YES;
	if (job->gone)
		return MHD_NO;
	if (job->error.code)
		return refuse(server, connection, smalti_serve_status(job->error.code), "%s",
			      job->error.message);
	if (!job->as_png)
		return answer_text(server, connection, MHD_HTTP_OK, json, smalti_serve_images_text(job));
	return queue_response(
	    server, connection, MHD_HTTP_OK, "image/png",
	    MHD_create_response_from_buffer(job->images[0].size, job->images[0].data, MHD_RESPMEM_MUST_COPY));
}

static const struct {
	unsigned status;
	const char *message;
} admissions[] = {
    [SMALTI_SERVE_TOO_FAST] = {MHD_HTTP_TOO_MANY_REQUESTS, "too many requests in a minute; try again later"},
    [SMALTI_SERVE_TOO_MANY] = {MHD_HTTP_TOO_MANY_REQUESTS,
			       "too many of your images are waiting; try again later"},
    [SMALTI_SERVE_FULL] = {MHD_HTTP_SERVICE_UNAVAILABLE, "the queue is full; try again later"},
    [SMALTI_SERVE_NO_MEMORY] = {MHD_HTTP_SERVICE_UNAVAILABLE, "no memory; try again later"},
};

static struct smalti_serve_job *read_job(struct smalti_server *server, struct exchange *exchange,
					 struct smalti_error *error)
{
	struct smalti_serve_request request;
	struct smalti_serve_job *job = NULL;
	const struct smalti_serve_body *body = &exchange->body;
	if (exchange->route->read(&request, body->data ? body->data : "", body->length, server->options,
				  server->model_name, error) == 0) {
		uint64_t seed = 0;
		if (!request.line.has_seed && getrandom(&seed, sizeof(seed), 0) == sizeof(seed))
			request.request.seed = seed >> (64 - SEED_BITS);
		job = smalti_serve_job_new(server, &request, error);
	}
	smalti_serve_request_free(&request);
	smalti_serve_body_free(server, &exchange->body);
	return job;
}

/* Puts the job behind those that wait; the connection has a reference. */
static enum MHD_Result enqueue(struct smalti_server *server, struct MHD_Connection *connection,
			       struct smalti_serve_job *job)
{
	struct smalti_serve_peer *peer = smalti_serve_peer_of(connection);
	pthread_mutex_lock(&server->mutex);
	const bool closing = server->closing || server->stopping;
	const enum smalti_serve_admission admission =
	    closing || server->open >= MAX_WAITING
		? SMALTI_SERVE_FULL
		: smalti_serve_queue_put(&server->queue, peer->client, smalti_now(), &job->waiting);
	if (admission == SMALTI_SERVE_ADMITTED) {
		peer->job = job;
		job->peer = peer;
		job->references++;
		job->connection = connection;
		server->open++;
	} else {
		smalti_serve_job_release(job);
	}
	pthread_mutex_unlock(&server->mutex);
	if (closing)
		return refuse(server, connection, MHD_HTTP_SERVICE_UNAVAILABLE, "the server is closing");
	if (admission != SMALTI_SERVE_ADMITTED)
		return refuse(server, connection, admissions[admission].status, "%s",
			      admissions[admission].message);
	return job->request.stream ? answer_stream(server, connection, job) : MHD_YES;
}

/* Accepts only the route's type. A browser sends no JSON for another site's page without asking first, and a
 * form with its Origin, which the head was checked for. */
static bool is_of_type(struct MHD_Connection *connection, const char *expected)
{
	const char *type =
	    MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_TYPE);
	return type && strncasecmp(type, expected, strlen(expected)) == 0;
}

static enum MHD_Result answer_images(struct smalti_server *server, struct MHD_Connection *connection,
				     struct exchange *exchange)
{
	struct smalti_serve_job *job = smalti_serve_peer_of(connection)->job;
	if (job)
		return answer_job(server, connection, job);
	if (!is_of_type(connection, exchange->route->type))
		return refuse(server, connection, MHD_HTTP_UNSUPPORTED_MEDIA_TYPE,
			      "expected Content-Type: %s", exchange->route->type);
	struct smalti_error error = SMALTI_NO_ERROR;
	job = read_job(server, exchange, &error);
	if (!job)
		return refuse(server, connection, smalti_serve_status(error.code), "%s", error.message);
	const char *accept = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	job->as_png = accept && strcmp(accept, "image/png") == 0;
	if (job->as_png && (job->request.request.images > 1 || job->request.stream)) {
		pthread_mutex_lock(&server->mutex);
		smalti_serve_job_release(job);
		pthread_mutex_unlock(&server->mutex);
		return refuse(server, connection, MHD_HTTP_NOT_ACCEPTABLE,
			      "Accept: image/png is for one image, without \"stream\"");
	}
	return enqueue(server, connection, job);
}

static const struct route routes[] = {
    {.method = "GET", .path = "/", .answer = answer_page, .open = true},
    {.method = "GET", .path = "/health", .answer = answer_health, .open = true},
    {.method = "GET", .path = "/metrics", .answer = answer_metrics},
    {.method = "GET", .path = "/v1/models", .answer = answer_models},
    {.method = "GET", .path = "/v1/activity", .answer = answer_activity},
    {.method = "POST",
     .path = "/v1/images/generations",
     .answer = answer_images,
     .type = json,
     .most = MAX_BODY,
     .read = smalti_serve_request_read},
    {.method = "POST",
     .path = "/v1/images/edits",
     .answer = answer_images,
     .type = "multipart/form-data",
     .most = MAX_FORM,
     .read = smalti_serve_edit_read},
};

static const struct route *find_route(const char *path)
{
	for (size_t i = 0; i < COUNT_OF(routes); i++)
		if (strcmp(routes[i].path, path) == 0)
			return &routes[i];
	return NULL;
}

static bool method_fits(const struct route *route, const char *method)
{
	return strcmp(route->method, method) == 0 ||
	       (strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 && strcmp(route->method, MHD_HTTP_METHOD_GET) == 0);
}

/* Checks before the body is read. */
static struct smalti_serve_refusal check_head(const struct smalti_server *server,
					      struct MHD_Connection *connection, const struct route *route,
					      const char *method, const char *version)
{
	struct smalti_serve_refusal refusal =
	    smalti_serve_check_head(server, connection, version, !route || route->open);
	if (refusal.status)
		return refusal;
	if (!route)
		refusal = (struct smalti_serve_refusal){
		    MHD_HTTP_NOT_FOUND,
		    "there is nothing here; images are made by POST /v1/images/generations"};
	else if (!method_fits(route, method))
		refusal = (struct smalti_serve_refusal){MHD_HTTP_METHOD_NOT_ALLOWED, route->method};
	return refusal;
}

static size_t most_bytes(const struct exchange *exchange)
{
	return exchange->route && exchange->route->most ? exchange->route->most : MAX_BODY;
}

/* Adds to the body. One that is refused is passed over, so that the answer is read, but not for ever: -1. */
static int add_body(struct smalti_server *server, struct exchange *exchange, const char *data, size_t size)
{
	if (!exchange->refusal.status)
		exchange->refusal = (struct smalti_serve_refusal){
		    smalti_serve_body_add(server, &exchange->body, data, size, most_bytes(exchange)),
		    "too much is being read; try again later"};
	if (!exchange->refusal.status)
		return 0;
	smalti_serve_body_free(server, &exchange->body);
	exchange->passed_over += size;
	return exchange->passed_over > MAX_PASSED_OVER ? -1 : 0;
}

static enum MHD_Result refuse_head(struct smalti_server *server, struct MHD_Connection *connection,
				   const struct exchange *exchange)
{
	const struct smalti_serve_refusal *refusal = &exchange->refusal;
	if (refusal->status == MHD_HTTP_METHOD_NOT_ALLOWED)
		return refuse(server, connection, refusal->status, "%s expects %s", exchange->route->path,
			      refusal->reason);
	if (refusal->status == MHD_HTTP_CONTENT_TOO_LARGE)
		return refuse(server, connection, refusal->status, "a request has %zu bytes at most",
			      most_bytes(exchange));
	return refuse(server, connection, refusal->status, "%s", refusal->reason);
}

/* Begins when the head is there. */
static enum MHD_Result begin_exchange(struct smalti_server *server, struct MHD_Connection *connection,
				      struct exchange *exchange, const char *method, const char *version)
{
	struct smalti_serve_peer *peer = smalti_serve_peer_of(connection);
	if (!peer)
		return MHD_NO;
	peer->old = strcmp(version, MHD_HTTP_VERSION_1_0) == 0;
	exchange->refusal = check_head(server, connection, exchange->route, method, version);
	/* An answer before the body closes the connection, so that the body is not taken for a request. */
	return exchange->refusal.status == MHD_HTTP_BAD_REQUEST ? refuse_head(server, connection, exchange)
								: MHD_YES;
}

/* Answers when the body is there; called again while there is no answer. */
static enum MHD_Result answer_exchange(struct smalti_server *server, struct MHD_Connection *connection,
				       struct exchange *exchange)
{
	if (!exchange->complete) {
		HOLD_MUTEX(&server->mutex);
		smalti_serve_peer_expect(smalti_serve_peer_of(connection), SMALTI_SERVE_SECONDS);
		exchange->complete = true;
	}
	if (exchange->refusal.status)
		return refuse_head(server, connection, exchange);
	return exchange->route->answer(server, connection, exchange);
}

static enum MHD_Result handle(void *user, struct MHD_Connection *connection, const char *path,
			      const char *method, const char *version, const char *data, size_t *size,
			      void **state)
{
	struct smalti_server *server = user;
	struct exchange *exchange = *state;
	if (!exchange) {
		*state = exchange = calloc(1, sizeof(*exchange));
		if (!exchange)
			return MHD_NO;
		exchange->route = find_route(path);
		return begin_exchange(server, connection, exchange, method, version);
	}
	if (*size) {
		const int status = add_body(server, exchange, data, *size);
		*size = 0;
		return status == 0 ? MHD_YES : MHD_NO;
	}
	return answer_exchange(server, connection, exchange);
}

static void completed(void *user, struct MHD_Connection *connection, void **state,
		      enum MHD_RequestTerminationCode code)
{
	struct smalti_server *server = user;
	struct exchange *exchange = *state;
	struct smalti_serve_peer *peer = smalti_serve_peer_of(connection);
	(void)code;
	if (!exchange)
		return;
	if (peer) {
		HOLD_MUTEX(&server->mutex);
		smalti_serve_peer_completed(peer);
	}
	smalti_serve_body_free(server, &exchange->body);
	free(exchange);
	*state = NULL;
}

/* Counts what the HTTP library answers by itself, which it tells in its log alone. Its other words are for
 * developers. */
static void hear(void *user, const char *format, va_list args)
{
	struct smalti_server *server = user;
	if (!strstr(format, "HTTP response code is %u"))
		return;
	HOLD_MUTEX(&server->mutex);
	smalti_serve_metrics_answer(&server->metrics, va_arg(args, unsigned));
}

int smalti_serve_open_http(struct smalti_server *server, struct smalti_error *error)
{
	const struct sockaddr *address = &server->address.any;
	const unsigned six = address->sa_family == AF_INET6 ? MHD_USE_IPv6 : 0;
	errno = 0;
	server->daemon = MHD_start_daemon(
	    MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG | six, 0, NULL, NULL,
	    handle, server, MHD_OPTION_EXTERNAL_LOGGER, hear, server, MHD_OPTION_SOCK_ADDR, address,
	    MHD_OPTION_CONNECTION_LIMIT, (unsigned)MAX_CONNECTIONS, MHD_OPTION_CONNECTION_TIMEOUT,
	    (unsigned)IDLE_SECONDS, MHD_OPTION_NOTIFY_COMPLETED, completed, server,
	    MHD_OPTION_NOTIFY_CONNECTION, smalti_serve_peer_notify, server, MHD_OPTION_END);
	if (!server->daemon)
		return smalti_fail_errno(error, "%s: cannot listen there", server->options->listen);
	return 0;
}

uint16_t smalti_serve_port(const struct smalti_server *server)
{
	const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_BIND_PORT);
	return info ? info->port : 0;
}

/* Sends answers that are ready first, for a few seconds at most. */
void smalti_serve_close_http(struct smalti_server *server)
{
	enum { TENTHS = 50, TENTH = 100000 };
	for (int i = 0; i < TENTHS; i++) {
		pthread_mutex_lock(&server->mutex);
		const bool open = server->open > 0;
		pthread_mutex_unlock(&server->mutex);
		if (!open)
			break;
		usleep(TENTH);
	}
	MHD_stop_daemon(server->daemon);
}
