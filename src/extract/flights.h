/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_FLIGHTS_H
#define SMALTI_EXTRACT_FLIGHTS_H

#include "extract/window.h"

/* The computing between lists and rows: packs of captions through T5, pictures through the VAE's encoder,
 * each a graph of tasks, as many in flight as memory takes. All by one thread, the one that inserts tasks. */
struct smalti_flights;

struct smalti_flights_work {
	int64_t captions, tokens, pictures, pixels; /* made */
	int64_t pictures_in_flight, captions_in_flight;
	double text_seconds, decoding_seconds, vae_seconds; /* of workers */
};

/* `done` is told of windows whose rows are complete, on the calling thread of the functions below; `watch`
 * some ten times a second while one of them waits. */
struct smalti_flights *smalti_flights_open(const struct smalti_extract_parts *parts,
					   void (*done)(void *user, struct smalti_window *window),
					   void (*watch)(void *user), void *user, struct smalti_error *error);
/* Inserts all that is to be computed for a window whose pictures have been fetched; waits for memory. What is
 * wrong with an item is noted there. -1 for what is wrong with more than that. */
int smalti_flights_begin(struct smalti_flights *flights, struct smalti_window *window,
			 struct smalti_error *error);
/* Until something has landed, or a tenth of a second has passed. */
int smalti_flights_serve(struct smalti_flights *flights, struct smalti_error *error);
bool smalti_flights_any(const struct smalti_flights *flights);
void smalti_flights_work(const struct smalti_flights *flights, struct smalti_flights_work *work);
/* Whatever is in flight fails soon. */
void smalti_flights_cancel(struct smalti_flights *flights);
/* Waits for all; *work is what was done in the end. NULL is fine. */
void smalti_flights_close(struct smalti_flights *flights, struct smalti_flights_work *work);

#endif
