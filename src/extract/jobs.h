/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_JOBS_H
#define SMALTI_EXTRACT_JOBS_H

#include "extract/window.h"

/* The computing between lists and rows: packs of captions through T5, images through the VAE's encoder,
 * each a graph of tasks, as many at a time as memory takes. All by one thread, the one that inserts tasks. */
struct smalti_extract_jobs;

struct smalti_extract_work {
	int64_t captions, tokens, images, pixels; /* made */
	int64_t active_images, active_captions;
	double text_seconds, decoding_seconds, vae_seconds; /* of workers */
};

/* `done` is called with windows whose rows are complete, on the calling thread of the functions below;
 * `on_progress` some ten times a second while one of them waits. */
struct smalti_extract_jobs *smalti_extract_jobs_open(const struct smalti_extract_parts *parts,
						     void (*done)(void *user, struct smalti_window *window),
						     void (*on_progress)(void *user), void *user,
						     struct smalti_error *error);
/* Inserts all that is to be computed for a window whose images have been fetched; waits for memory. What is
 * wrong with an item is noted there. -1 for what is wrong with more than that. */
int smalti_extract_jobs_begin(struct smalti_extract_jobs *jobs, struct smalti_window *window,
			      struct smalti_error *error);
/* Until a job is complete, or a tenth of a second has passed. */
int smalti_extract_jobs_wait(struct smalti_extract_jobs *jobs, struct smalti_error *error);
bool smalti_extract_jobs_any(const struct smalti_extract_jobs *jobs);
void smalti_extract_jobs_work(const struct smalti_extract_jobs *jobs, struct smalti_extract_work *work);
/* Whatever is under way fails soon. */
void smalti_extract_jobs_cancel(struct smalti_extract_jobs *jobs);
/* Waits for all; *work is what was done in the end. NULL is fine. */
void smalti_extract_jobs_close(struct smalti_extract_jobs *jobs, struct smalti_extract_work *work);

#endif
