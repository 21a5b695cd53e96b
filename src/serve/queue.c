/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/queue.h"

enum { MAX_CLIENTS = 4096, MINUTE = 60 };

struct smalti_serve_client {
	struct smalti_serve_client *next;
	char name[64];
	struct smalti_serve_waiting *first;
	int64_t images;        /* of those that wait */
	int64_t active;        /* images */
	int64_t turn;          /* of its last image */
	double allowed, since; /* requests that it may make at time `since` */
};

void smalti_serve_queue_open(struct smalti_serve_queue *queue, const struct smalti_serve_limits *limits)
{
	*queue = (struct smalti_serve_queue){.limits = *limits};
	pthread_cond_init(&queue->any, NULL);
}

void smalti_serve_queue_close(struct smalti_serve_queue *queue)
{
	for (struct smalti_serve_client *client = queue->clients, *next; client; client = next) {
		next = client->next;
		free(client);
	}
	pthread_cond_destroy(&queue->any);
}

/* Lets what a client may ask for grow with the time. */
static void allow(const struct smalti_serve_queue *queue, struct smalti_serve_client *client, double now)
{
	const double max = (double)queue->limits.rate;
	client->allowed += (now - client->since) * max / MINUTE;
	client->allowed = client->allowed < max ? client->allowed : max;
	client->since = now;
}

/* Forgets the clients of which nothing need be remembered. */
static void forget_idle(struct smalti_serve_queue *queue, double now)
{
	struct smalti_serve_client **at = &queue->clients;
	while (*at) {
		struct smalti_serve_client *client = *at;
		allow(queue, client, now);
		if (client->first || client->active || client->allowed < (double)queue->limits.rate) {
			at = &client->next;
			continue;
		}
		*at = client->next;
		free(client);
		queue->client_count--;
	}
}

/* Forgets the client that has used least of its rate, so that the least is lost. A client with images that
 * wait or are being made stays. */
static void forget_one(struct smalti_serve_queue *queue)
{
	struct smalti_serve_client **min = NULL;
	for (struct smalti_serve_client **at = &queue->clients; *at; at = &(*at)->next)
		if (!(*at)->first && !(*at)->active && (!min || (*at)->allowed > (*min)->allowed))
			min = at;
	if (!min)
		return;
	struct smalti_serve_client *client = *min;
	*min = client->next;
	free(client);
	queue->client_count--;
}

/* Puts a new client behind all others. */
static struct smalti_serve_client *find_client(struct smalti_serve_queue *queue, const char *name, double now)
{
	struct smalti_serve_client **at = &queue->clients;
	forget_idle(queue, now);
	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	if (*at)
		return *at;
	struct smalti_serve_client *client = smalti_calloc(1, sizeof(*client), NULL);
	if (!client)
		return NULL;
	if (queue->client_count >= MAX_CLIENTS)
		forget_one(queue);
	snprintf(client->name, sizeof(client->name), "%s", name);
	client->allowed = (double)queue->limits.rate;
	client->since = now;
	queue->client_count++;
	at = &queue->clients;
	while (*at)
		at = &(*at)->next;
	return *at = client;
}

static enum smalti_serve_admission admit(const struct smalti_serve_queue *queue,
					 const struct smalti_serve_client *client, int64_t images)
{
	const struct smalti_serve_limits *limits = &queue->limits;
	if (limits->rate && client->allowed < 1)
		return SMALTI_SERVE_TOO_FAST;
	if (client->images + images > limits->of_client)
		return SMALTI_SERVE_TOO_MANY;
	return queue->waiting + images > limits->waiting ? SMALTI_SERVE_FULL : SMALTI_SERVE_ADMITTED;
}

/* Puts a request behind the client's others. */
static void append(struct smalti_serve_client *client, struct smalti_serve_waiting *waiting)
{
	struct smalti_serve_waiting **last = &client->first;
	while (*last)
		last = &(*last)->next;
	*last = waiting;
	waiting->next = NULL;
	waiting->client = client;
	waiting->waits = true;
}

enum smalti_serve_admission smalti_serve_queue_put(struct smalti_serve_queue *queue, const char *name,
						   double now, struct smalti_serve_waiting *waiting)
{
	struct smalti_serve_client *client = find_client(queue, name, now);
	if (!client)
		return SMALTI_SERVE_NO_MEMORY;
	const enum smalti_serve_admission admission = admit(queue, client, waiting->images);
	if (admission != SMALTI_SERVE_ADMITTED)
		return admission;
	append(client, waiting);
	client->allowed -= queue->limits.rate ? 1 : 0;
	client->images += waiting->images;
	queue->waiting += waiting->images;
	pthread_cond_signal(&queue->any);
	return SMALTI_SERVE_ADMITTED;
}

static bool may_go(const struct smalti_serve_queue *queue, const struct smalti_serve_client *client)
{
	return client->first && (!queue->limits.active || client->active < queue->limits.active);
}

/* Puts the first client that may go behind all others. */
static struct smalti_serve_client *next_client(struct smalti_serve_queue *queue)
{
	struct smalti_serve_client **at = &queue->clients;
	while (*at && !may_go(queue, *at))
		at = &(*at)->next;
	struct smalti_serve_client *client = *at;
	if (!client)
		return NULL;
	*at = client->next;
	while (*at)
		at = &(*at)->next;
	*at = client;
	client->next = NULL;
	return client;
}

struct smalti_serve_waiting *smalti_serve_queue_take(struct smalti_serve_queue *queue)
{
	struct smalti_serve_client *client = next_client(queue);
	if (!client)
		return NULL;
	struct smalti_serve_waiting *waiting = client->first;
	client->first = waiting->next;
	waiting->waits = false;
	waiting->images--;
	waiting->taken++;
	waiting->turn = client->turn = smalti_max(client->turn, queue->turn) + 1;
	client->images--;
	client->active++;
	queue->waiting--;
	if (waiting->images)
		append(client, waiting);
	return waiting;
}

void smalti_serve_queue_done(struct smalti_serve_queue *queue, const struct smalti_serve_waiting *waiting,
			     int64_t turn)
{
	waiting->client->active--;
	pthread_cond_signal(&queue->any);
	queue->turn = smalti_max(queue->turn, turn);
}

bool smalti_serve_queue_leave(struct smalti_serve_queue *queue, struct smalti_serve_waiting *waiting)
{
	struct smalti_serve_client *client = waiting->client;
	if (!waiting->waits)
		return false;
	struct smalti_serve_waiting **at = &client->first;
	while (*at != waiting)
		at = &(*at)->next;
	*at = waiting->next;
	waiting->waits = false;
	client->images -= waiting->images;
	queue->waiting -= waiting->images;
	return true;
}

struct smalti_serve_waiting *smalti_serve_queue_untouched(const struct smalti_serve_queue *queue)
{
	for (struct smalti_serve_client *client = queue->clients; client; client = client->next)
		for (struct smalti_serve_waiting *waiting = client->first; waiting; waiting = waiting->next)
			if (waiting->taken == 0)
				return waiting;
	return NULL;
}
