/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "extract/flight.h"

#include <stdlib.h>

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
	smalti_landing_init(&flights->landing);
	return flights;
}

static int status_of(const struct smalti_flights *flights, struct smalti_error *error)
{
	if (!flights->broken.code)
		return 0;
	return smalti_fail(error, flights->broken.code, "%s", flights->broken.message);
}

int smalti_flights_serve(struct smalti_flights *flights, struct smalti_error *error)
{
	smalti_flight_serve(flights);
	flights->watch(flights->user);
	return status_of(flights, error);
}

bool smalti_flights_any(const struct smalti_flights *flights)
{
	return flights->in_flight > 0;
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

void smalti_flights_work(const struct smalti_flights *flights, struct smalti_flights_work *work)
{
	*work = flights->work;
}

void smalti_flights_cancel(struct smalti_flights *flights)
{
	smalti_scope_cancel(flights->cancelled);
}

void smalti_flights_close(struct smalti_flights *flights, struct smalti_flights_work *work)
{
	if (!flights)
		return;
	while (flights->in_flight)
		smalti_flight_serve(flights);
	*work = flights->work;
	for (int i = 0; i < flights->plan_count; i++)
		smalti_vae_plan_free(&flights->plans[i].plan);
	free(flights->plans);
	smalti_landing_destroy(&flights->landing);
	smalti_scope_free(flights->cancelled);
	free(flights);
}
