/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/flight.h"

#include "base/alloc.h"
#include "rt/throttle.h"

#include <stdlib.h>

/* In flight for each worker: enough to have tasks ready at any time, few enough that their tiles are in
 * memory that was used a moment ago. */
enum { FLIGHTS_EACH = 4 };

/* On a worker, when the last task of a flight has ended. */
static void landed(void *user)
{
	struct flight *flight = user;
	smalti_land(&flight->of->landing, &flight->landed);
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
	flight->land(flight);
	flights->in_flight--;
	flights->bytes_in_flight -= flight->bytes;
	free_flight(flight);
	if (--window->flights == 0 && !flights->broken.code)
		flights->done(flights->user, window);
}

static void serve_landed(void *user)
{
	struct smalti_flights *flights = user;
	struct smalti_landed *landed = smalti_landing_take(&flights->landing);
	for (struct smalti_landed *next; landed; landed = next) {
		next = landed->next;
		leave((struct flight *)landed);
	}
}

void smalti_flight_serve(struct smalti_flights *flights)
{
	if (flights->in_flight)
		smalti_landing_await(&flights->landing);
	serve_landed(flights);
}

/* While the insertion of a flight is blocked. */
static void serve_meanwhile(void *user)
{
	const struct smalti_flights *flights = user;
	serve_landed(user);
	flights->watch(flights->user);
}

static void serve_and_tell(struct smalti_flights *flights)
{
	smalti_flight_serve(flights);
	flights->watch(flights->user);
}

struct flight *smalti_flight_open(struct smalti_flights *flights, struct smalti_window *window,
				  const char *name, int64_t bytes, void (*land)(struct flight *flight),
				  struct smalti_error *error)
{
	const int64_t most = FLIGHTS_EACH * smalti_session_workers(flights->parts->session);
	while (flights->in_flight >= most ||
	       (flights->in_flight && flights->bytes_in_flight + bytes > flights->memory))
		serve_and_tell(flights);
	struct flight *flight = smalti_calloc(1, sizeof(*flight), error);
	if (!flight)
		return NULL;
	flight->of = flights;
	flight->window = window;
	flight->bytes = bytes;
	flight->land = land;
	/* What began first is ended first, while its tiles are in the caches. */
	flight->scope = smalti_scope_new(flights->parts->session, name, -flights->begun++, error);
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
