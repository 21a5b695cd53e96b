/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/batch.h"
#include "jobs/plan.h"

static bool encoded_together(const struct smalti_image_job *work)
{
	return work->texts[0] && work->texts[0]->task_group == work->texts[1]->task_group;
}

/* Returns an image's done share, and its stage. */
static double share_of(const struct smalti_image_job *work, struct smalti_batch_progress *where)
{
	struct smalti_task_group_progress own, text;
	smalti_task_group_progress(work->job.task_group, &own);
	double done = own.done < work->flops ? own.done : work->flops, all = work->flops;
	int64_t left = 0;
	for (int i = 0; i < 2; i++)
		if (work->texts[i] && !(i == 1 && encoded_together(work))) {
			smalti_task_group_progress(work->texts[i]->task_group, &text);
			done += text.done;
			all += text.inserted;
			left += text.left;
		}
	const int64_t steps = work->plan->sampler->steps;
	const int64_t step = smalti_min(smalti_max(own.stage, 1), steps);
	where->stage = own.stage <= 1 && left ? SMALTI_STAGE_TEXT
		       : own.stage <= steps   ? SMALTI_STAGE_DENOISING
					      : SMALTI_STAGE_DECODING;
	where->step = where->stage == SMALTI_STAGE_TEXT ? 0 : step;
	where->steps = steps;
	return done / all;
}

void smalti_batch_progress(struct smalti_batch *batch, struct smalti_batch_progress *progress)
{
	*progress = (struct smalti_batch_progress){0};
	HOLD(&batch->queue.mutex);
	for (const struct smalti_job *job = batch->queue.oldest; job; job = job->next) {
		struct smalti_batch_progress where = {0};
		progress->images +=
		    share_of((const struct smalti_image_job *)job, progress->active++ ? &where : progress);
	}
}

static void tell_images(struct smalti_batch *batch)
{
	HOLD(&batch->queue.mutex);
	for (const struct smalti_job *job = batch->queue.oldest; job; job = job->next) {
		const struct smalti_image_job *work = (const struct smalti_image_job *)job;
		struct smalti_batch_progress progress = {.active = 1};
		if (!work->receiver.progress)
			continue;
		progress.images = share_of(work, &progress);
		work->receiver.progress(work->receiver.user, &progress);
	}
}

void smalti_batch_report_complete(const struct smalti_image_job *work)
{
	const int64_t steps = work->plan->sampler->steps;
	const struct smalti_batch_progress progress = {
	    .active = 1, .images = 1, .stage = SMALTI_STAGE_DECODING, .step = steps, .steps = steps};
	if (work->receiver.progress)
		work->receiver.progress(work->receiver.user, &progress);
}

void smalti_batch_report(void *user)
{
	struct smalti_batch *batch = user;
	struct smalti_batch_progress progress;
	tell_images(batch);
	if (!batch->on_progress)
		return;
	smalti_batch_progress(batch, &progress);
	batch->on_progress(batch->user, &progress);
}
