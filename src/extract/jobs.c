/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/jobs.h"
#include "jobs/precision.h"

#include <math.h>

/* The jobs for each worker: enough to have tasks ready at any time, few enough that their tiles are in memory
 * that was used a moment ago. */
enum { JOBS_EACH = 4 };

int smalti_extract_jobs_open(struct smalti_extract_jobs *jobs, const struct smalti_extract_parts *parts,
			     void (*done)(void *user, struct smalti_window *window),
			     void (*on_progress)(void *user), void *user, struct smalti_error *error)
{
	*jobs = (struct smalti_extract_jobs){.parts = parts, .done = done, .user = user};
	if (smalti_queue_open(&jobs->queue, parts->session, JOBS_EACH * (int64_t)parts->session->workers,
			      error) < 0)
		return -1;
	jobs->queue.progress = on_progress;
	jobs->queue.user = user;
	return parts->vae ? smalti_extract_jobs_count_images(jobs, error) : 0;
}

int smalti_extract_jobs_wait(struct smalti_extract_jobs *jobs, struct smalti_error *error)
{
	smalti_queue_wait(&jobs->queue);
	return smalti_pass(error, &jobs->broken);
}

int smalti_extract_jobs_begin(struct smalti_extract_jobs *jobs, struct smalti_window *window,
			      struct smalti_error *error)
{
	window->jobs = 1; /* the window cannot be done before all */
	const struct smalti_extract_parts *parts = jobs->parts;
	if (smalti_pass(error, &jobs->broken) ||
	    (parts->text.model && smalti_extract_jobs_begin_texts(jobs, window, error)) ||
	    (parts->vae && smalti_extract_jobs_begin_images(jobs, window, error)) ||
	    smalti_pass(error, &jobs->broken))
		return -1;
	if (--window->jobs == 0)
		jobs->done(jobs->user, window);
	return 0;
}

void smalti_extract_jobs_close(struct smalti_extract_jobs *jobs)
{
	jobs->queue.progress = NULL;
	if (jobs->queue.cancelled)
		smalti_queue_drain(&jobs->queue);
	for (int i = 0; i < jobs->plan_count; i++)
		smalti_vae_plan_free(&jobs->plans[i].plan);
	free(jobs->plans);
	smalti_queue_close(&jobs->queue);
}

static void complete(struct smalti_job *base)
{
	struct smalti_extract_job *job = (struct smalti_extract_job *)base;
	struct smalti_extract_jobs *jobs = job->of;
	struct smalti_window *window = job->window;
	job->finish(job);
	free(job->captions);
	free(job);
	if (--window->jobs == 0 && !jobs->broken.code)
		jobs->done(jobs->user, window);
}

struct smalti_extract_job *smalti_extract_job_open(struct smalti_extract_jobs *jobs,
						   struct smalti_window *window, const char *name,
						   int64_t bytes,
						   void (*finish)(struct smalti_extract_job *job),
						   struct smalti_error *error)
{
	smalti_queue_admit(&jobs->queue, bytes, jobs->parts->room.all);
	struct smalti_extract_job *job = smalti_calloc(1, sizeof(*job), error);
	if (!job)
		return NULL;
	job->of = jobs;
	job->window = window;
	job->finish = finish;
	job->job.bytes = bytes;
	job->job.complete = complete;
	if (smalti_job_open(&jobs->queue, &job->job, name, error) < 0) {
		free(job);
		return NULL;
	}
	job->job.task_group->keeps_to_devices = true;
	smalti_task_group_depends_on(job->job.task_group, jobs->parts->weights);
	window->jobs++;
	return job;
}

/* Checks values. A finite number beyond the shards' type would be infinite there. */
static int check_kept(enum smalti_dtype dtype, int64_t count, const float *values, const char *maker,
		      struct smalti_error *error)
{
	for (int64_t i = 0; i < count; i++)
		if (!isfinite(smalti_round(dtype, values[i])))
			return smalti_fail(
			    error, SMALTI_ECORRUPT,
			    "the %s gave %g, which %s has not: choose another type of features", maker,
			    (double)values[i], smalti_dtype_name(dtype));
	return 0;
}

void *smalti_extract_job_keep(const struct smalti_extract_jobs *jobs, int64_t count, const float *values,
			      const char *maker, enum smalti_dtype compute, struct smalti_error *error)
{
	const enum smalti_dtype dtype = jobs->parts->schema.dtype;
	if (smalti_precision_check_made(
		count, values, &(struct smalti_maker){.model = maker, .compute = compute}, error) < 0)
		return NULL;
	void *kept = smalti_aligned_alloc(count, smalti_dtype_bytes(dtype), error);
	if (!kept)
		return NULL;
	smalti_narrow(dtype, values, count, kept);
	if (check_kept(dtype, count, values, maker, error) == 0)
		return kept;
	free(kept);
	return NULL;
}
