/* SPDX-License-Identifier: Apache-2.0 */
#include "extract/job.h"

#include "base/alloc.h"

#include <stdlib.h>

static void complete(struct smalti_job *base)
{
	struct extract_job *job = (struct extract_job *)base;
	struct smalti_extract_jobs *jobs = job->of;
	struct smalti_window *window = job->window;
	job->finish(job);
	free(job->captions);
	free(job);
	if (--window->jobs == 0 && !jobs->broken.code)
		jobs->done(jobs->user, window);
}

struct extract_job *smalti_extract_job_open(struct smalti_extract_jobs *jobs, struct smalti_window *window,
					    const char *name, int64_t bytes,
					    void (*finish)(struct extract_job *job),
					    struct smalti_error *error)
{
	smalti_queue_admit(&jobs->queue, bytes, jobs->memory);
	struct extract_job *job = smalti_calloc(1, sizeof(*job), error);
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
	smalti_task_group_needs(job->job.task_group, jobs->parts->weights);
	window->jobs++;
	return job;
}

void *smalti_extract_job_keep(const struct smalti_extract_jobs *jobs, int64_t count, const float *values,
			      const char *maker, struct smalti_error *error)
{
	const enum smalti_dtype dtype = jobs->parts->schema.dtype;
	if (smalti_check_made(count, values, maker, error) < 0)
		return NULL;
	void *kept = smalti_aligned_alloc(count, smalti_dtype_bytes(dtype), error);
	if (kept)
		smalti_narrow(dtype, values, count, kept);
	return kept;
}
