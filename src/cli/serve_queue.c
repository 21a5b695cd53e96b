/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/serve_queue.h"
#include "base/clock.h"

enum { MOST_CLIENTS = 4096, TENTH = 100000000, MINUTE = 60 };

struct smalti_serve_client {
	struct smalti_serve_client *next;
	char name[64];
	struct smalti_serve_waiting *first;
	int64_t images;        /* of those that wait */
	double allowed, since; /* requests that it may make at that moment */
};

void smalti_serve_queue_open(struct smalti_serve_queue *queue, const struct smalti_serve_limits *limits)
{
	*queue = (struct smalti_serve_queue){.limits = *limits};
	pthread_mutex_init(&queue->mutex, NULL);
	pthread_cond_init(&queue->any, NULL);
}

void smalti_serve_queue_close(struct smalti_serve_queue *queue)
{
	for (struct smalti_serve_client *client = queue->clients, *next; client; client = next) {
		next = client->next;
		free(client);
	}
	pthread_cond_destroy(&queue->any);
	pthread_mutex_destroy(&queue->mutex);
}

/* What it may ask for grows with the time. */
static void allow(const struct smalti_serve_queue *queue, struct smalti_serve_client *client, double now)
{
	const double most = (double)queue->limits.rate;
	client->allowed += (now - client->since) * most / MINUTE;
	client->allowed = client->allowed < most ? client->allowed : most;
	client->since = now;
}

/* Those of whom nothing is to be remembered. */
static void forget_idle(struct smalti_serve_queue *queue, double now)
{
	struct smalti_serve_client **at = &queue->clients;
	while (*at) {
		struct smalti_serve_client *client = *at;
		allow(queue, client, now);
		if (client->first || client->allowed < (double)queue->limits.rate) {
			at = &client->next;
			continue;
		}
		*at = client->next;
		free(client);
		queue->client_count--;
	}
}

/* Behind all others, if it is new. */
static struct smalti_serve_client *find_client(struct smalti_serve_queue *queue, const char *name, double now)
{
	struct smalti_serve_client **at = &queue->clients;
	forget_idle(queue, now);
	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	if (*at || queue->client_count == MOST_CLIENTS)
		return *at;
	*at = smalti_calloc(1, sizeof(**at), NULL);
	if (!*at)
		return NULL;
	snprintf((*at)->name, sizeof((*at)->name), "%s", name);
	(*at)->allowed = (double)queue->limits.rate;
	(*at)->since = now;
	queue->client_count++;
	return *at;
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

enum smalti_serve_admission smalti_serve_queue_put(struct smalti_serve_queue *queue, const char *name,
						   double now, struct smalti_serve_waiting *waiting)
{
	HOLD_MUTEX(&queue->mutex);
	struct smalti_serve_client *client = find_client(queue, name, now);
	if (!client)
		return SMALTI_SERVE_NO_MEMORY;
	const enum smalti_serve_admission admission = admit(queue, client, waiting->images);
	if (admission != SMALTI_SERVE_ADMITTED)
		return admission;
	struct smalti_serve_waiting **last = &client->first;
	while (*last)
		last = &(*last)->next;
	*last = waiting;
	waiting->next = NULL;
	client->allowed -= queue->limits.rate ? 1 : 0;
	client->images += waiting->images;
	queue->waiting += waiting->images;
	pthread_cond_signal(&queue->any);
	return SMALTI_SERVE_ADMITTED;
}

/* The first client that has some goes behind all others. */
static struct smalti_serve_client *next_client(struct smalti_serve_queue *queue)
{
	struct smalti_serve_client **at = &queue->clients;
	while (*at && !(*at)->first)
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
	const struct timespec deadline = smalti_deadline(TENTH);
	HOLD_MUTEX(&queue->mutex);
	while (!queue->waiting)
		if (pthread_cond_clockwait(&queue->any, &queue->mutex, CLOCK_MONOTONIC, &deadline) != 0)
			return NULL;
	struct smalti_serve_client *client = next_client(queue);
	struct smalti_serve_waiting *waiting = client->first;
	client->first = waiting->next;
	client->images -= waiting->images;
	queue->waiting -= waiting->images;
	return waiting;
}

int64_t smalti_serve_queue_waiting(struct smalti_serve_queue *queue)
{
	HOLD_MUTEX(&queue->mutex);
	return queue->waiting;
}
