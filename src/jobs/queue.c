/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/queue.h"

enum { TENTH = 100000000, THOUSANDTH = 1000000 }; /* of a second, in nanoseconds */

int smalti_queue_open(struct smalti_queue *queue, struct smalti_session *session, int64_t max_jobs,
		      struct smalti_error *error)
{
	*queue = (struct smalti_queue){.session = session, .max_jobs = max_jobs, .doomed = -1};
	queue->cancelled = smalti_task_group_new(session, "cancelled", 0, error);
	if (!queue->cancelled)
		return -1;
	smalti_mutex_open(&queue->mutex);
	smalti_condition_open(&queue->any);
	return 0;
}

void smalti_queue_close(struct smalti_queue *queue)
{
	if (!queue->cancelled)
		return;
	smalti_task_group_free(queue->cancelled);
	smalti_condition_close(&queue->any);
	smalti_mutex_close(&queue->mutex);
	queue->cancelled = NULL;
}

/* Moves a job into or out of the active list. */
static void enter(struct smalti_job *job)
{
	struct smalti_queue *queue = job->queue;
	HOLD(&queue->mutex);
	struct smalti_job **last = &queue->oldest;
	while (*last)
		last = &(*last)->next;
	*last = job;
	queue->submitted++;
	queue->active++;
	queue->active_bytes += job->bytes;
}

static void leave(struct smalti_job *job)
{
	struct smalti_queue *queue = job->queue;
	HOLD(&queue->mutex);
	struct smalti_job **at = &queue->oldest;
	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	queue->active--;
	queue->active_bytes -= job->bytes;
}

/* Notes on a worker that the last task of a job has ended. */
static void ended(void *user)
{
	struct smalti_job *job = user;
	struct smalti_queue *queue = job->queue;
	HOLD(&queue->mutex);
	job->next_completed = queue->completed;
	queue->completed = job;
	smalti_condition_broadcast(&queue->any);
}

/* Tells whether other ranks have ended it, too, if this rank hears of it. A failure elsewhere is the cause of
 * a later one here, but a job cancelled there may have failed here. */
static bool ended_everywhere(struct smalti_job *job)
{
	struct smalti_error elsewhere = SMALTI_NO_ERROR, here = SMALTI_NO_ERROR;
	if (!smalti_ranks_outcomes_received(&job->outcomes, &elsewhere))
		return false;
	smalti_task_group_status(job->task_group, &here);
	const bool failed_here = here.code && here.code != SMALTI_ECANCELLED;
	if (elsewhere.code && !(elsewhere.code == SMALTI_ECANCELLED && failed_here))
		smalti_task_group_fail_because(job->task_group, &elsewhere);
	smalti_ranks_report(job->number, &here);
	return true;
}

static struct smalti_job *take_ended(struct smalti_queue *queue)
{
	HOLD(&queue->mutex);
	struct smalti_job *jobs = queue->elsewhere, **last = &jobs;
	while (*last)
		last = &(*last)->next_completed;
	*last = queue->completed;
	queue->completed = queue->elsewhere = NULL;
	return jobs;
}

static void look_later(struct smalti_job *job)
{
	struct smalti_queue *queue = job->queue;
	HOLD(&queue->mutex);
	job->next_completed = queue->elsewhere;
	queue->elsewhere = job;
}

static void doom(struct smalti_job *job)
{
	job->doomed = true;
	smalti_task_group_cancel(job->task_group);
}

static void doom_number(struct smalti_queue *queue, int64_t number)
{
	for (struct smalti_job *job = queue->oldest; job; job = job->next)
		if (job->number == number)
			doom(job);
	if (number >= queue->submitted)
		queue->doomed = number;
}

void smalti_queue_exchange_failures(struct smalti_queue *queue)
{
	HOLD(&queue->mutex);
	if (smalti_ranks_count() == 1)
		return;
	for (int64_t number; (number = smalti_ranks_warned()) >= 0;)
		doom_number(queue, number);
	for (struct smalti_job *job = queue->oldest; job; job = job->next)
		if (!job->doomed && smalti_task_group_failed(job->task_group)) {
			job->doomed = true;
			smalti_ranks_warn(job->number);
		}
}

static void complete_ended(struct smalti_queue *queue)
{
	smalti_queue_exchange_failures(queue);
	for (struct smalti_job *job = take_ended(queue), *next; job; job = next) {
		struct smalti_task_group *task_group = job->task_group;
		next = job->next_completed;
		if (!ended_everywhere(job)) {
			look_later(job);
			continue;
		}
		leave(job);
		job->complete(job);
		smalti_task_group_free(task_group);
	}
}

static void report(const struct smalti_queue *queue)
{
	if (queue->progress)
		queue->progress(queue->user);
}

/* Serves the queue while the insertion of a job is blocked. */
static void meanwhile(void *user)
{
	struct smalti_queue *queue = user;
	complete_ended(queue);
	report(queue);
}

static void await(struct smalti_queue *queue)
{
	HOLD(&queue->mutex);
	const int64_t min = queue->elsewhere ? THOUSANDTH : TENTH;
	while (!queue->completed && smalti_condition_wait_some(&queue->any, &queue->mutex, min))
		;
}

void smalti_queue_serve(struct smalti_queue *queue)
{
	struct smalti_throttle *throttle = &queue->session->throttle;
	smalti_insertion_begin(throttle);
	meanwhile(queue);
	smalti_insertion_end(throttle);
}

/* Waits, letting paused jobs be resumed meanwhile. */
static void await_inserting(struct smalti_queue *queue)
{
	struct smalti_throttle *throttle = &queue->session->throttle;
	const bool lets_others = queue->paused > 0;
	if (lets_others)
		smalti_insertion_end(throttle);
	await(queue);
	if (lets_others)
		smalti_insertion_begin(throttle);
}

void smalti_queue_wait(struct smalti_queue *queue)
{
	if (queue->active)
		await_inserting(queue);
	meanwhile(queue);
}

void smalti_queue_admit(struct smalti_queue *queue, int64_t bytes, int64_t memory)
{
	while (queue->active >= queue->max_jobs || (queue->active && queue->active_bytes + bytes > memory))
		smalti_queue_wait(queue);
}

/* Lets other threads submit between two calls. */
static bool any_active(struct smalti_queue *queue)
{
	struct smalti_throttle *throttle = &queue->session->throttle;
	smalti_insertion_begin(throttle);
	complete_ended(queue);
	const bool any = queue->active > 0;
	if (any)
		report(queue);
	smalti_insertion_end(throttle);
	return any;
}

void smalti_queue_drain(struct smalti_queue *queue)
{
	while (any_active(queue))
		await(queue);
}

void smalti_queue_cancel(struct smalti_queue *queue)
{
	smalti_task_group_cancel(queue->cancelled);
}

int smalti_job_open(struct smalti_queue *queue, struct smalti_job *job, const char *name,
		    struct smalti_error *error)
{
	struct smalti_throttle *throttle = &queue->session->throttle;
	smalti_insertion_begin(throttle);
	/* Jobs that began first end first, while their tiles are in the caches. */
	job->task_group = smalti_task_group_new(queue->session, name, job->ahead - queue->submitted, error);
	if (!job->task_group) {
		smalti_insertion_end(throttle);
		return -1;
	}
	job->queue = queue;
	job->number = queue->submitted;
	job->outcomes = smalti_ranks_expect(job->number);
	smalti_task_group_depends_on(job->task_group, queue->cancelled);
	enter(job);
	if (job->number == queue->doomed)
		doom(job);
	smalti_throttle_serve(throttle, meanwhile, queue);
	return 0;
}

void smalti_job_submit(struct smalti_job *job)
{
	struct smalti_throttle *throttle = &job->queue->session->throttle;
	smalti_throttle_serve(throttle, NULL, NULL);
	smalti_task_group_close(job->task_group, ended, job);
	smalti_insertion_end(throttle);
}

void smalti_job_pause(struct smalti_job *job)
{
	struct smalti_throttle *throttle = &job->queue->session->throttle;
	job->queue->paused++;
	smalti_throttle_serve(throttle, NULL, NULL);
	smalti_insertion_end(throttle);
}

void smalti_job_resume(struct smalti_job *job)
{
	smalti_insertion_begin(&job->queue->session->throttle);
	job->queue->paused--;
}
