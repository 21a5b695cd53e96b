/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_FLIGHT_H
#define SMALTI_EXTRACT_FLIGHT_H

#include "extract/flights.h"
#include "jobs/landing.h"

/* For the files flight*.c alone. */

struct caption_in_flight;

/* What is computed, and fails, together: a pack of captions, or one picture. */
struct flight {
	struct smalti_landed landed;
	struct smalti_flights *of;
	struct smalti_window *window;
	struct smalti_scope *scope;
	int64_t bytes;                      /* that it holds at most */
	struct caption_in_flight *captions; /* of a pack */
	int64_t caption_count;
	struct smalti_extract_item *item; /* whose picture it is; NULL: a pack */
	double decoding_seconds;
	void (*land)(struct flight *flight);
};

/* How pictures of a bin are encoded; made when the first one comes. */
struct bin_plan {
	int64_t height, width; /* of the latents */
	struct smalti_vae_plan plan;
};

struct smalti_flights {
	const struct smalti_extract_parts *parts;
	struct smalti_scope *cancelled; /* without tasks */
	void (*done)(void *user, struct smalti_window *window);
	void (*watch)(void *user);
	void *user;
	int64_t memory, bytes_in_flight, in_flight, begun;
	int64_t pack_tokens;
	struct bin_plan *plans;
	int plan_count;
	struct smalti_flights_work work;
	struct smalti_error broken; /* the run's failure, code 0: none */
	struct smalti_landing landing;
};

/* A flight of the window that will hold so many bytes, when there is memory for it; NULL with an error. Then
 * its tasks are inserted, then it takes off; `land` notes in the items what became of it, after its last
 * task. */
struct flight *smalti_flight_open(struct smalti_flights *flights, struct smalti_window *window,
				  const char *name, int64_t bytes, void (*land)(struct flight *flight),
				  struct smalti_error *error);
void smalti_flight_take_off(struct flight *flight);

/* Inserts the captions, or the pictures, of a window. */
int smalti_flights_begin_texts(struct smalti_flights *flights, struct smalti_window *window,
			       struct smalti_error *error);
int smalti_flights_begin_pictures(struct smalti_flights *flights, struct smalti_window *window,
				  struct smalti_error *error);
/* What has landed, waited for a moment. */
void smalti_flight_serve(struct smalti_flights *flights);

/* Of values, in the shards' type, for free(); NULL with an error, also (ECORRUPT) for what is not finite. */
void *smalti_flight_keep(const struct smalti_flights *flights, int64_t count, const float *values,
			 const char *maker, struct smalti_error *error);

#endif
