/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "extract/flight.h"
#include "rt/throttle.h"

#include <stdlib.h>
#include <time.h>

enum { TELL_NANOSECONDS = 100000000 };
/* In flight for each worker: enough to have tasks ready at any time, few enough that their tiles are in
 * memory that was used a moment ago. */
enum { FLIGHTS_EACH = 4 };
/* Captions that share a reading of the weights: more would hardly be faster, and take memory. */
enum { PACK_TOKENS_MAX = 2048, PACK_TOKENS_MIN = 512 };

/* Two packs in half of the memory. */
static int64_t choose_pack(const struct smalti_extract_parts *parts, int64_t memory)
{
	int64_t tokens = smalti_window_tokens(parts);
	if (tokens > PACK_TOKENS_MAX)
		tokens = PACK_TOKENS_MAX;
	while (parts->text.t5 && tokens > PACK_TOKENS_MIN &&
	       smalti_t5_working_bytes(parts->text.t5, tokens) > memory / 4)
		tokens /= 2;
	return tokens;
}

struct smalti_flights *smalti_flights_open(const struct smalti_extract_parts *parts,
					   void (*done)(void *user, struct smalti_window *window),
					   void (*watch)(void *user), void *user, struct smalti_error *error)
{
	struct smalti_flights *flights = smalti_calloc(1, sizeof(*flights), error);
	if (!flights)
		return NULL;
	flights->cancelled = smalti_scope_new(parts->session, "cancelled", 0, error);
	if (!flights->cancelled) {
		free(flights);
		return NULL;
	}
	flights->parts = parts;
	flights->done = done;
	flights->watch = watch;
	flights->user = user;
	flights->memory = smalti_extract_memory(parts);
	flights->pack_tokens = choose_pack(parts, flights->memory);
	pthread_mutex_init(&flights->mutex, NULL);
	pthread_cond_init(&flights->landed, NULL);
	return flights;
}

/* On a worker, when the last task of a flight has ended. */
static void landed(void *user)
{
	struct flight *flight = user;
	struct smalti_flights *flights = flight->of;
	pthread_mutex_lock(&flights->mutex);
	flight->next = flights->finished;
	flights->finished = flight;
	pthread_cond_signal(&flights->landed);
	pthread_mutex_unlock(&flights->mutex);
}

static void free_flight(struct flight *flight)
{
	smalti_scope_free(flight->scope);
	free(flight->captions);
	free(flight);
}

static void leave(struct flight *flight)
{
	struct smalti_flights *flights = flight->of;
	struct smalti_window *window = flight->window;
	if (flight->item)
		smalti_flight_land_picture(flight);
	else
		smalti_flight_land_texts(flight);
	flights->in_flight--;
	flights->bytes_in_flight -= flight->bytes;
	free_flight(flight);
	if (--window->flights == 0 && !flights->broken.code)
		flights->done(flights->user, window);
}

static void serve_landed(void *user)
{
	struct smalti_flights *flights = user;
	pthread_mutex_lock(&flights->mutex);
	struct flight *finished = flights->finished;
	flights->finished = NULL;
	pthread_mutex_unlock(&flights->mutex);
	for (struct flight *flight = finished, *next; flight; flight = next) {
		next = flight->next;
		leave(flight);
	}
}

/* While the insertion of a flight is blocked. */
static void serve_meanwhile(void *user)
{
	const struct smalti_flights *flights = user;
	serve_landed(user);
	flights->watch(flights->user);
}

static void await_landing(struct smalti_flights *flights)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += TELL_NANOSECONDS;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	pthread_mutex_lock(&flights->mutex);
	int status = 0;
	while (!flights->finished && status == 0)
		status = pthread_cond_timedwait(&flights->landed, &flights->mutex, &until);
	pthread_mutex_unlock(&flights->mutex);
}

static int status_of(const struct smalti_flights *flights, struct smalti_error *error)
{
	if (!flights->broken.code)
		return 0;
	return smalti_fail(error, flights->broken.code, "%s", flights->broken.message);
}

int smalti_flights_serve(struct smalti_flights *flights, struct smalti_error *error)
{
	if (flights->in_flight)
		await_landing(flights);
	serve_meanwhile(flights);
	return status_of(flights, error);
}

bool smalti_flights_any(const struct smalti_flights *flights)
{
	return flights->in_flight > 0;
}

struct flight *smalti_flight_open(struct smalti_flights *flights, struct smalti_window *window,
				  const char *name, int64_t bytes, struct smalti_error *error)
{
	const int64_t most = FLIGHTS_EACH * smalti_session_workers(flights->parts->session);
	while (flights->in_flight >= most ||
	       (flights->in_flight && flights->bytes_in_flight + bytes > flights->memory))
		smalti_flights_serve(flights, NULL);
	struct flight *flight = smalti_calloc(1, sizeof(*flight), error);
	if (!flight)
		return NULL;
	flight->of = flights;
	flight->window = window;
	flight->bytes = bytes;
	flight->scope = smalti_scope_new(flights->parts->session, name, -window->first, error);
	if (!flight->scope) {
		free(flight);
		return NULL;
	}
	smalti_scope_needs(flight->scope, flights->parts->weights);
	smalti_scope_needs(flight->scope, flights->cancelled);
	window->flights++;
	flights->in_flight++;
	flights->bytes_in_flight += bytes;
	smalti_throttle_serve(serve_meanwhile, flights);
	return flight;
}

void smalti_flight_take_off(struct flight *flight)
{
	smalti_throttle_serve(NULL, NULL);
	smalti_scope_seal(flight->scope, landed, flight);
}

int smalti_flights_begin(struct smalti_flights *flights, struct smalti_window *window,
			 struct smalti_error *error)
{
	window->flights = 1; /* it cannot be done before all of it was begun */
	int status = status_of(flights, error);
	if (status == 0 && flights->parts->text.t5)
		status = smalti_flights_begin_texts(flights, window, error);
	if (status == 0 && flights->parts->vae)
		status = smalti_flights_begin_pictures(flights, window, error);
	if (status == 0)
		status = status_of(flights, error);
	if (status == 0 && --window->flights == 0)
		flights->done(flights->user, window);
	return status;
}

void *smalti_flight_keep(const struct smalti_flights *flights, int64_t count, const float *values,
			 const char *maker, struct smalti_error *error)
{
	const enum smalti_dtype dtype = flights->parts->schema.dtype;
	if (smalti_check_made(count, values, maker, error) < 0)
		return NULL;
	void *kept = smalti_aligned_alloc(count, smalti_dtype_bytes(dtype), error);
	if (kept)
		smalti_narrow(dtype, values, count, kept);
	return kept;
}

void smalti_flights_work(const struct smalti_flights *flights, struct smalti_flights_work *work)
{
	*work = flights->work;
}

void smalti_flights_cancel(struct smalti_flights *flights)
{
	smalti_scope_cancel(flights->cancelled);
}

void smalti_flights_close(struct smalti_flights *flights)
{
	if (!flights)
		return;
	while (flights->in_flight) {
		await_landing(flights);
		serve_landed(flights);
	}
	for (int i = 0; i < flights->plan_count; i++)
		smalti_vae_plan_free(&flights->plans[i].plan);
	free(flights->plans);
	pthread_cond_destroy(&flights->landed);
	pthread_mutex_destroy(&flights->mutex);
	smalti_scope_free(flights->cancelled);
	free(flights);
}
