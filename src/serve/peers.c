/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "jobs/batch.h"
#include "serve/serve.h"

#include <poll.h>

/* Connections of one address, so that it does not shut out all others. */
enum { MAX_OF_CLIENT = SMALTI_SERVE_CONNECTIONS / 2 };

static void close_peer(struct smalti_serve_peer *peer)
{
	shutdown(peer->socket, SHUT_RDWR); /* the HTTP library notices, and closes it */
	peer->closing = true;
}

static bool waits_for_images(const struct smalti_serve_peer *peer)
{
	return peer->job && !peer->job->ended;
}

/* Tells whether there may be one more of a client, or with NULL of all. If not, closes the one whose deadline
 * is next, unless it waits for images. */
static bool make_room(struct smalti_server *server, const char *client, int max)
{
	struct smalti_serve_peer *oldest = NULL;
	int count = 0;
	for (struct smalti_serve_peer *peer = server->peers; peer; peer = peer->next) {
		if (client && strcmp(peer->client, client) != 0)
			continue;
		count++;
		if (!waits_for_images(peer) && !peer->closing &&
		    (!oldest || peer->deadline < oldest->deadline))
			oldest = peer;
	}
	if (count < max)
		return true;
	if (oldest)
		close_peer(oldest);
	return oldest;
}

void smalti_serve_peer_expect(struct smalti_serve_peer *peer, int seconds)
{
	peer->deadline = smalti_now() + seconds;
}

static void begin(struct smalti_server *server, struct MHD_Connection *connection, void **context)
{
	struct smalti_serve_peer *peer = calloc(1, sizeof(*peer));
	*context = peer;
	const int file = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
	if (!peer) {
		shutdown(file, SHUT_RDWR);
		return;
	}
	peer->socket = file;
	smalti_serve_address_name(
	    MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS)->client_addr,
	    peer->client);
	smalti_serve_peer_expect(peer, SMALTI_SERVE_SECONDS);
	if (!make_room(server, peer->client, MAX_OF_CLIENT) ||
	    !make_room(server, NULL, SMALTI_SERVE_CONNECTIONS))
		close_peer(peer);
	peer->next = server->peers;
	server->peers = peer;
}

static void end(struct smalti_server *server, struct smalti_serve_peer *peer)
{
	struct smalti_serve_peer **at = &server->peers;
	while (*at != peer)
		at = &(*at)->next;
	*at = peer->next;
	free(peer);
}

void smalti_serve_peer_notify(void *user, struct MHD_Connection *connection, void **context,
			      enum MHD_ConnectionNotificationCode code)
{
	struct smalti_server *server = user;
	HOLD_MUTEX(&server->mutex);
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		begin(server, connection, context);
	else if (*context)
		end(server, *context);
}

struct smalti_serve_peer *smalti_serve_peer_of(struct MHD_Connection *connection)
{
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

void smalti_serve_peer_completed(struct smalti_serve_peer *peer)
{
	struct smalti_serve_job *job = peer->job;
	peer->job = NULL;
	peer->probed = false;
	smalti_serve_peer_expect(peer, SMALTI_SERVE_SECONDS);
	if (!job)
		return;
	job->connection = NULL;
	job->peer = NULL;
	job->server->open--;
	smalti_serve_job_drop(job);
	smalti_serve_job_release(job);
}

/* Makes the client's system answer if the client is gone, for one that closes only its sending half waits on.
 * Returns false if nothing can be sent that a client ignores. */
static bool probe(struct smalti_serve_peer *peer)
{
	static const char passed_over[] = "HTTP/1.1 100 Continue\r\n\r\n";
	const size_t length = strlen(passed_over);
	if (peer->job->request.stream) {
		smalti_serve_job_comment(peer->job);
		return true;
	}
	return !peer->old &&
	       send(peer->socket, passed_over, length, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)length;
}

/* Looks itself: the HTTP library ignores a connection that sleeps. */
static bool is_gone(struct smalti_serve_peer *peer)
{
	struct pollfd look = {.fd = peer->socket, .events = POLLRDHUP};
	if (poll(&look, 1, 0) <= 0)
		return false;
	if (look.revents & (POLLERR | POLLHUP | POLLNVAL))
		return true;
	if (peer->probed)
		return false;
	peer->probed = true;
	return !probe(peer);
}

/* Closes late connections; returns whether the server goes on. */
static bool look_at_all(struct smalti_server *server)
{
	HOLD_MUTEX(&server->mutex);
	const double now = smalti_now();
	if (server->stopping && !server->closing)
		smalti_serve_jobs_refuse(server);
	for (struct smalti_serve_peer *peer = server->peers; peer; peer = peer->next) {
		if (waits_for_images(peer)) {
			if (is_gone(peer))
				smalti_serve_job_drop(peer->job);
		} else if (peer->deadline < now && !peer->closing) {
			close_peer(peer);
		}
	}
	return !server->over;
}

void *smalti_serve_watch(void *user)
{
	enum { TENTH = 100000 };
	struct smalti_server *server = user;
	while (look_at_all(server)) {
		smalti_batch_drop(server->batch, smalti_serve_is_unwanted);
		usleep(TENTH);
	}
	return NULL;
}
