/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "extract/window.h"
#include "jobs/queue.h"
#include "store/run_log.h"

/* The computations between lists and rows: packs of captions by T5, images by the VAE's encoder. Each is a
 * graph of tasks, with as many at a time as memory allows. One thread does it all, the one that inserts
 * tasks. */
struct smalti_extract_jobs {
	const struct smalti_extract_parts *parts;
	struct smalti_queue queue;
	void (*done)(void *user, struct smalti_window *window);
	void *user;     /* of `done` */
	int64_t images; /* computed at a time, if they are square; 0: there are none */
	struct smalti_bin_plan *plans;
	int plan_count;
	struct smalti_run_sample work; /* members that jobs fill: captions to pixels, computing, seconds */
	struct smalti_error broken;    /* the run's failure, code 0: none */
};

/* How images of a bin are encoded. It is made for the first one. */
struct smalti_bin_plan {
	int64_t height, width; /* of the latents */
	struct smalti_vae_plan plan;
};

/* Opens the jobs. -1 also if one image of the bins exceeds the memory. `done` is called with complete
 * windows, on the calling thread of the functions below; `on_progress` about ten times a second while one of
 * them waits. Close them in any case. */
int smalti_extract_jobs_open(struct smalti_extract_jobs *jobs, const struct smalti_extract_parts *parts,
			     void (*done)(void *user, struct smalti_window *window),
			     void (*on_progress)(void *user), void *user, struct smalti_error *error);
/* Inserts all tasks of a window whose images have been fetched; waits for memory. A fault of an item is noted
 * in the item. -1 for other faults. */
int smalti_extract_jobs_begin(struct smalti_extract_jobs *jobs, struct smalti_window *window,
			      struct smalti_error *error);
/* Waits until a job is complete, or a tenth of a second has passed. */
int smalti_extract_jobs_wait(struct smalti_extract_jobs *jobs, struct smalti_error *error);
/* Waits for all jobs. Jobs of all zeros were never opened. */
void smalti_extract_jobs_close(struct smalti_extract_jobs *jobs);

/* The following declarations are for the files job_*.c. */

/* The unit that is computed, and fails, together: a pack of captions, or one image. */
struct smalti_extract_job {
	struct smalti_job job;
	struct smalti_extract_jobs *of;
	struct smalti_window *window;
	struct smalti_caption_job *captions; /* of a pack */
	int64_t caption_count;
	struct smalti_extract_item *item; /* whose image it is; NULL: a pack */
	double decoding_seconds;
	void (*finish)(struct smalti_extract_job *job);
};

/* Opens a job that will hold so many bytes, when there is memory for it; NULL with an error. Then its tasks
 * are inserted, then it is submitted (smalti_job_submit()). After its last task `finish` notes the outcome in
 * the items. */
struct smalti_extract_job *smalti_extract_job_open(struct smalti_extract_jobs *jobs,
						   struct smalti_window *window, const char *name,
						   int64_t bytes,
						   void (*finish)(struct smalti_extract_job *job),
						   struct smalti_error *error);

/* Inserts the captions, or the images, of a window. */
int smalti_extract_jobs_begin_texts(struct smalti_extract_jobs *jobs, struct smalti_window *window,
				    struct smalti_error *error);
int smalti_extract_jobs_begin_images(struct smalti_extract_jobs *jobs, struct smalti_window *window,
				     struct smalti_error *error);
/* Finds how many images are computed at a time, which plans a square one. */
int smalti_extract_jobs_count_images(struct smalti_extract_jobs *jobs, struct smalti_error *error);
/* Returns values computed with operands of `compute`, in the shards' type, for free(); NULL with an error,
 * also (ECORRUPT) for what is not finite there. */
void *smalti_extract_job_keep(const struct smalti_extract_jobs *jobs, int64_t count, const float *values,
			      const char *maker, enum smalti_dtype compute, struct smalti_error *error);
