/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/parse.h"
#include "image/picture.h"
#include "jobs/image_file.h"
#include "serve/queue.h"
#include "text/prompts.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdatomic.h>

/* Images over HTTP, for `smalti serve`. The HTTP library's thread reads requests and writes answers, one
 * thread submits what waits to the batch, and the main thread waits for the batch. */

struct smalti_serve_options {
	const char *listen, *token_file;
	int64_t width, height, steps, images; /* the most of a request */
	struct smalti_serve_limits limits;
	struct smalti_request request; /* what a request does not say */
	struct smalti_model_options model;
	struct smalti_string_list loras; /* "NAME=PATH": adapters that requests may name */
	struct smalti_session_options session;
	bool quiet;
};

/* Returns the model's name in requests, for free(): the directory's last name, or, in a snapshot of Hugging
 * Face's cache, whose name is a hash, the model's ("org/name"). */
char *smalti_serve_model_name(const char *path, struct smalti_error *error);

/* request.c: a body of POST /v1/images/generations. */
struct smalti_serve_request {
	struct smalti_prompt_line line; /* its texts */
	struct smalti_request request;
	struct smalti_picture image, mask; /* its pictures; empty: it has none */
	bool stream;
};
/* Returns -1 with what is wrong with it; `model` names this server's. Free it either way. */
int smalti_serve_request_read(struct smalti_serve_request *request, const char *body, size_t length,
			      const struct smalti_serve_options *options, const char *model,
			      struct smalti_error *error);
/* edit.c: the same of a form of POST /v1/images/edits. */
int smalti_serve_edit_read(struct smalti_serve_request *request, const char *body, size_t length,
			   const struct smalti_serve_options *options, const char *model,
			   struct smalti_error *error);
/* Frees the pictures, once the request was planned. */
void smalti_serve_request_free_pictures(struct smalti_serve_request *request);
void smalti_serve_request_free(struct smalti_serve_request *request);

/* lora.c: the adapters that requests may name. */
/* Checks that each text is NAME=PATH, with names of their own. */
int smalti_serve_loras_check(const struct smalti_string_list *loras, struct smalti_error *error);
/* Opens each adapter once, so that a file that is wrong is found at the start. */
int smalti_serve_loras_open(const struct smalti_model *model, const struct smalti_string_list *loras,
			    struct smalti_error *error);
/* Turns "NAME[:WEIGHT],..." of a request into "PATH[:WEIGHT],...", for free(). */
char *smalti_serve_loras_paths(const struct smalti_string_list *loras, const char *text,
			       struct smalti_error *error);

/* listen.c: where to listen. "127.0.0.1:8000", "[::1]:8000" or "localhost:8000"; port 0: a free one. */
struct smalti_serve_address {
	union {
		struct sockaddr any;
		struct sockaddr_in four;
		struct sockaddr_in6 six;
	};
	bool local; /* reached from this machine alone */
};
int smalti_serve_address_read(struct smalti_serve_address *address, const char *text,
			      struct smalti_error *error);
/* Tells whether a name, with a port behind it or none, can be of this machine alone: "localhost", 127.x.x.x
 * or [::1], whatever a name server says. */
bool smalti_serve_is_local(const char *authority);
/* Tells this of the name in an Origin: "http://localhost:8000". */
bool smalti_serve_is_local_origin(const char *origin);
/* Names a peer: "127.0.0.1", or an IPv6 network of 64 bits, where one has as many addresses as he likes. */
void smalti_serve_address_name(const struct sockaddr *address, char name[INET6_ADDRSTRLEN]);

/* metrics.c: what is counted, for Prometheus. */
enum { SMALTI_SERVE_BUCKETS = 12, SMALTI_SERVE_STATUSES = 16 };
struct smalti_serve_metrics {
	int64_t answers[SMALTI_SERVE_STATUSES]; /* by status, in the order of a table */
	int64_t made, failed, dropped;          /* images; dropped: nobody waited for them any more */
	int64_t buckets[SMALTI_SERVE_BUCKETS], requests;
	double seconds; /* of answered requests for images, from their arrival on */
};
void smalti_serve_metrics_answer(struct smalti_serve_metrics *metrics, unsigned status);
void smalti_serve_metrics_request(struct smalti_serve_metrics *metrics, double seconds);

struct smalti_serve_job;
struct smalti_serve_peer;
struct smalti_server;

/* head.c: what a request's head is refused for, before its body is read. */
struct smalti_serve_refusal {
	unsigned status; /* 0: nothing */
	const char *reason;
};
/* Checks a request's head. `open`: it needs no token. A status of 400 closes the connection. */
struct smalti_serve_refusal smalti_serve_check_head(const struct smalti_server *server,
						    struct MHD_Connection *connection, const char *version,
						    bool open);

struct smalti_server {
	const struct smalti_serve_options *options;
	const char *model_name;
	char *token; /* NULL: everybody may */
	struct smalti_session *session;
	struct smalti_model *model;
	struct smalti_batch *batch;
	struct smalti_image_origin origin;
	struct smalti_serve_address address;
	struct MHD_Daemon *daemon;
	size_t bodies; /* bytes of requests that the HTTP library's thread holds */
	pthread_t submitter, watcher;
	double started;
	atomic_bool stopping;
	pthread_mutex_t mutex; /* guards what follows, and jobs */
	bool closing;          /* takes no more requests */
	bool over;             /* answers none any more */
	struct smalti_serve_peer *peers;
	struct smalti_serve_queue queue;
	bool asleep;    /* the workers: nothing was to be done for a while */
	int64_t open;   /* connections that wait for images */
	int64_t active; /* images in the batch */
	struct smalti_serve_metrics metrics;
};

/* server.c. A server begins with its options alone. Close it whatever fails. */

/* Reads the address that it listens at and its token: what is wrong with them is known before a session is
 * opened. */
int smalti_server_prepare(struct smalti_server *server, struct smalti_error *error);
/* Opens the model in the session that the caller has opened for the server, and begins to answer. */
int smalti_server_start(struct smalti_server *server, struct smalti_error *error);
/* Makes images until the server is told to stop, then finishes the requests that have begun. Those that wait
 * are refused. */
void smalti_server_work(struct smalti_server *server);
/* Tells a server to stop; a signal's handler may call it. */
void smalti_server_stop(void *server);
/* Closes the server and its session. */
int smalti_server_close(struct smalti_server *server, struct smalti_error *error);

/* Returns the text of GET /metrics; NULL without memory. The server's mutex is held. */
char *smalti_serve_metrics_text(struct smalti_server *server);
/* Returns the JSON of GET /v1/activity: what workers did from task number `from` on. */
char *smalti_serve_activity(const struct smalti_server *server, int64_t from);

/* job.c: a request under way. It is freed when neither its connection nor the batch has it any more. */
struct smalti_serve_image {
	struct smalti_serve_job *job;
	int64_t number, turn;
	char *parameters; /* the metadata */
	char *steps;      /* what its step cache did; NULL: nothing */
	struct smalti_image_writer *writer;
	FILE *stream;
	char *data; /* of the PNG, complete when it is done */
	size_t size;
};

struct smalti_serve_job {
	struct smalti_serve_waiting waiting; /* first */
	struct smalti_server *server;
	struct smalti_serve_request request;
	struct smalti_plan *plan;
	struct smalti_serve_image *images;
	int64_t left; /* images that are not done */
	struct smalti_error error;
	bool ended;
	bool gone;                         /* the client */
	bool as_png;                       /* the answer is the first image itself */
	struct MHD_Connection *connection; /* NULL: nobody waits for it any more */
	struct smalti_serve_peer *peer;    /* its peer; NULL likewise */
	bool suspended;                    /* the connection, until there is something to write */
	int references;                    /* of the connection, the queue, and each image that was taken */
	char *events;                      /* of a stream, not sent yet; NULL: none */
	size_t sent;                       /* of these */
	double began;
};
struct smalti_serve_job *smalti_serve_job_new(struct smalti_server *server,
					      struct smalti_serve_request *request,
					      struct smalti_error *error);
/* The server's mutex is held. @{ */
void smalti_serve_job_release(struct smalti_serve_job *job);
/* Drops a job whose client is gone. */
void smalti_serve_job_drop(struct smalti_serve_job *job);
/* Adds a comment to a stream, which its reader ignores. */
void smalti_serve_job_comment(struct smalti_serve_job *job);
/* Begins to close the server: ends jobs that wait and have not begun. */
void smalti_serve_jobs_refuse(struct smalti_server *server);
/* @} */
/* Tells whether nobody waits for an image any more. */
bool smalti_serve_is_unwanted(void *image);
/* Tells whether the server stops and no image waits any more. */
bool smalti_serve_is_over(struct smalti_server *server);
/* Submits what waits until that is over; a thread of its own. */
void *smalti_serve_submit(void *server);

/* peers.c: the connections. A request that does not end is closed some seconds after its beginning, and so is
 * an answer that is not taken. Clients that are gone are noticed. There is always room for one more
 * connection. */
enum {
	SMALTI_SERVE_CONNECTIONS = 860, /* below the usual 1024 descriptors */
	SMALTI_SERVE_SECONDS = 15,      /* for a request, and for an answer without images */
	SMALTI_SERVE_IMAGE_SECONDS = 600
};
struct smalti_serve_peer {
	struct smalti_serve_peer *next;
	int socket;
	char client[INET6_ADDRSTRLEN];
	double deadline; /* of the request or of the answer; none while it waits for images */
	bool closing;
	bool old; /* the request's HTTP is older than 1.1 */
	bool probed;
	struct smalti_serve_job *job; /* that it waits for; NULL: none */
};
/* Notes that a connection begins or ends (MHD_OPTION_NOTIFY_CONNECTION). */
void smalti_serve_peer_notify(void *server, struct MHD_Connection *connection, void **context,
			      enum MHD_ConnectionNotificationCode code);
/* Returns NULL without memory: it is being closed. */
struct smalti_serve_peer *smalti_serve_peer_of(struct MHD_Connection *connection);
/* Set the deadline of what comes next, and note that the answer has been sent. The server's mutex is held.
 * @{ */
void smalti_serve_peer_expect(struct smalti_serve_peer *peer, int seconds);
void smalti_serve_peer_completed(struct smalti_serve_peer *peer);
/* @} */
/* Watches the connections until the server is over; a thread of its own. */
void *smalti_serve_watch(void *server);

/* body.c: the body of a request; only the HTTP library's thread uses it. */
struct smalti_serve_body {
	char *data; /* with a NUL behind it; NULL: empty */
	size_t length;
};
/* Adds bytes, up to `most` of them. Returns 0, or the status of the refusal. */
unsigned smalti_serve_body_add(struct smalti_server *server, struct smalti_serve_body *body, const char *data,
			       size_t size, size_t most);
void smalti_serve_body_free(struct smalti_server *server, struct smalti_serve_body *body);

/* answer.c: these return bodies, for free(); NULL without memory. */
char *smalti_serve_error_text(unsigned status, const char *message);
char *smalti_serve_images_text(const struct smalti_serve_job *job);
char *smalti_serve_image_event(const struct smalti_serve_image *image);
char *smalti_serve_progress_event(const struct smalti_serve_image *image,
				  const struct smalti_batch_progress *progress);
char *smalti_serve_error_event(const struct smalti_error *error);
char *smalti_serve_models_text(const struct smalti_server *server);
/* Returns the status that a failure is answered with. */
unsigned smalti_serve_status(enum smalti_code code);

/* Wakes the workers before tasks are inserted. The mutex is held. */
void smalti_serve_wake_workers(struct smalti_server *server);

/* http.c */
int smalti_serve_open_http(struct smalti_server *server, struct smalti_error *error);
void smalti_serve_close_http(struct smalti_server *server);
uint16_t smalti_serve_port(const struct smalti_server *server);
