/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_EXTRACT_JOB_H
#define SMALTI_EXTRACT_JOB_H

#include "extract/jobs.h"
#include "jobs/queue.h"

/* For the files job*.c alone. */

struct caption_job;

/* What is computed, and fails, together: a pack of captions, or one image. */
struct extract_job {
	struct smalti_job job;
	struct smalti_extract_jobs *of;
	struct smalti_window *window;
	struct caption_job *captions; /* of a pack */
	int64_t caption_count;
	struct smalti_extract_item *item; /* whose image it is; NULL: a pack */
	double decoding_seconds;
	void (*finish)(struct extract_job *job);
};

/* How images of a bin are encoded; made when the first one comes. */
struct bin_plan {
	int64_t height, width; /* of the latents */
	struct smalti_vae_plan plan;
};

struct smalti_extract_jobs {
	const struct smalti_extract_parts *parts;
	struct smalti_queue queue;
	void (*done)(void *user, struct smalti_window *window);
	void *user; /* of `done` */
	int64_t memory;
	int64_t pack_tokens;
	struct bin_plan *plans;
	int plan_count;
	struct smalti_extract_work work;
	struct smalti_error broken; /* the run's failure, code 0: none */
};

/* A job of the window that will hold so many bytes, when there is memory for it; NULL with an error. Then its
 * tasks are inserted, then it is submitted (smalti_job_submit()); `finish` notes in the items what became of
 * it, after its last task. */
struct extract_job *smalti_extract_job_open(struct smalti_extract_jobs *jobs, struct smalti_window *window,
					    const char *name, int64_t bytes,
					    void (*finish)(struct extract_job *job),
					    struct smalti_error *error);

/* Inserts the captions, or the images, of a window. */
int smalti_extract_jobs_begin_texts(struct smalti_extract_jobs *jobs, struct smalti_window *window,
				    struct smalti_error *error);
int smalti_extract_jobs_begin_images(struct smalti_extract_jobs *jobs, struct smalti_window *window,
				     struct smalti_error *error);
/* Of values, in the shards' type, for free(); NULL with an error, also (ECORRUPT) for what is not finite. */
void *smalti_extract_job_keep(const struct smalti_extract_jobs *jobs, int64_t count, const float *values,
			      const char *maker, struct smalti_error *error);

#endif
