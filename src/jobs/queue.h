/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_QUEUE_H
#define SMALTI_JOBS_QUEUE_H

#include "rt/session.h"

#include <pthread.h>
#include <stdbool.h>

/* The jobs under way: each a graph of tasks with a task group of its own, several at a time as far as memory
 * goes. A job's last task ends on a worker; the thread that submits or waits then completes the job. */
struct smalti_queue;

struct smalti_job {
	struct smalti_queue *queue;
	struct smalti_task_group *task_group;
	int64_t bytes; /* held at most */
	/* Called once for a job that was submitted, after its last task; frees the job, the queue its
	 * task group. It must not submit. */
	void (*complete)(struct smalti_job *job);
	struct smalti_job *next, *next_completed; /* in the queue's lists */
};

struct smalti_queue {
	struct smalti_session *session;
	struct smalti_task_group *cancelled; /* without tasks: failed when the queue is cancelled */
	int64_t max_jobs;
	/* Some ten times a second, by the thread that submits or waits; NULL: nobody asks. */
	void (*progress)(void *user);
	void *user;
	int64_t submitted; /* ever */
	int64_t in_flight, bytes_in_flight;
	pthread_mutex_t mutex; /* guards what follows */
	pthread_cond_t any;
	struct smalti_job *oldest;    /* in flight, in order of submission */
	struct smalti_job *completed; /* of those whose last task has ended, the last one first */
};

/* `max_jobs`: in flight at a time, whatever the memory. */
int smalti_queue_open(struct smalti_queue *queue, struct smalti_session *session, int64_t max_jobs,
		      struct smalti_error *error);
/* When nothing is in flight. One that is all zeros was never opened. */
void smalti_queue_close(struct smalti_queue *queue);

/* Waits until there is room for one more job, or nothing is in flight. */
void smalti_queue_admit(struct smalti_queue *queue, int64_t bytes, int64_t memory);
/* Completes what can be. */
void smalti_queue_poll(struct smalti_queue *queue);
/* The same, after waiting for something up to a tenth of a second, and reports progress. */
void smalti_queue_wait(struct smalti_queue *queue);
/* Until nothing is in flight. Several threads may. */
void smalti_queue_drain(struct smalti_queue *queue);
/* Everything in flight fails soon, and so do later jobs. Any thread, and signal handlers. */
void smalti_queue_cancel(struct smalti_queue *queue);

/* A job in flight, with `bytes` and `complete` set: makes its task group, in which tasks are inserted from
 * here on; earlier jobs go first. 0 or -1, and no job. */
int smalti_job_open(struct smalti_queue *queue, struct smalti_job *job, const char *name,
		    struct smalti_error *error);
/* No more tasks. */
void smalti_job_submit(struct smalti_job *job);

#endif
