/* SPDX-License-Identifier: Apache-2.0 */
#include "base/alloc.h"
#include "extract/job.h"

#include <stdlib.h>

/* For each worker: enough to have tasks ready at any time, few enough that their tiles are in memory that was
 * used a moment ago. */
enum { JOBS_EACH = 4 };

/* Captions that share a reading of the weights: more would hardly be faster, and take memory. */
enum { PACK_TOKENS_MAX = 2048, PACK_TOKENS_MIN = 512 };

/* Two packs in half of the memory. */
static int64_t choose_pack(const struct smalti_extract_parts *parts, int64_t memory)
{
	int64_t tokens = smalti_window_tokens(parts);
	if (tokens > PACK_TOKENS_MAX)
		tokens = PACK_TOKENS_MAX;
	while (parts->text.model && tokens > PACK_TOKENS_MIN &&
	       parts->text.model->functions->working_bytes(parts->text.model, tokens) > memory / 4)
		tokens /= 2;
	return tokens;
}

struct smalti_extract_jobs *smalti_extract_jobs_open(const struct smalti_extract_parts *parts,
						     void (*done)(void *user, struct smalti_window *window),
						     void (*on_progress)(void *user), void *user,
						     struct smalti_error *error)
{
	struct smalti_extract_jobs *jobs = smalti_calloc(1, sizeof(*jobs), error);
	if (!jobs)
		return NULL;
	const int64_t most = JOBS_EACH * (int64_t)smalti_session_workers(parts->session);
	if (smalti_queue_open(&jobs->queue, parts->session, most, error) < 0) {
		free(jobs);
		return NULL;
	}
	jobs->queue.progress = on_progress;
	jobs->queue.user = user;
	jobs->parts = parts;
	jobs->done = done;
	jobs->user = user;
	jobs->memory = smalti_extract_memory(parts);
	jobs->pack_tokens = choose_pack(parts, jobs->memory);
	return jobs;
}

static int status_of(const struct smalti_extract_jobs *jobs, struct smalti_error *error)
{
	if (!jobs->broken.code)
		return 0;
	return smalti_fail(error, jobs->broken.code, "%s", jobs->broken.message);
}

int smalti_extract_jobs_wait(struct smalti_extract_jobs *jobs, struct smalti_error *error)
{
	smalti_queue_wait(&jobs->queue);
	return status_of(jobs, error);
}

bool smalti_extract_jobs_any(const struct smalti_extract_jobs *jobs)
{
	return jobs->queue.active > 0;
}

int smalti_extract_jobs_begin(struct smalti_extract_jobs *jobs, struct smalti_window *window,
			      struct smalti_error *error)
{
	window->jobs = 1; /* it cannot be done before all of it was begun */
	int status = status_of(jobs, error);
	if (status == 0 && jobs->parts->text.model)
		status = smalti_extract_jobs_begin_texts(jobs, window, error);
	if (status == 0 && jobs->parts->vae)
		status = smalti_extract_jobs_begin_images(jobs, window, error);
	if (status == 0)
		status = status_of(jobs, error);
	if (status == 0 && --window->jobs == 0)
		jobs->done(jobs->user, window);
	return status;
}

void smalti_extract_jobs_work(const struct smalti_extract_jobs *jobs, struct smalti_extract_work *work)
{
	*work = jobs->work;
}

void smalti_extract_jobs_cancel(struct smalti_extract_jobs *jobs)
{
	smalti_queue_cancel(&jobs->queue);
}

void smalti_extract_jobs_close(struct smalti_extract_jobs *jobs, struct smalti_extract_work *work)
{
	if (!jobs)
		return;
	jobs->queue.progress = NULL;
	smalti_queue_drain(&jobs->queue);
	*work = jobs->work;
	for (int i = 0; i < jobs->plan_count; i++)
		smalti_vae_plan_free(&jobs->plans[i].plan);
	free(jobs->plans);
	smalti_queue_close(&jobs->queue);
	free(jobs);
}
