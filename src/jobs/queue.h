/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/ranks.h"
#include "rt/session.h"

/* The active jobs: each is a graph of tasks with a task group of its own, several at a time as far as memory
 * goes. A job's last task ends on a worker; the thread that submits or waits then completes the job. */
struct smalti_queue;

struct smalti_job {
	struct smalti_queue *queue;
	struct smalti_task_group *task_group;
	int64_t bytes; /* held at most */
	/* Called once for a job that was submitted, after its last task; frees the job, the queue its
	 * task group. It must not submit. */
	void (*complete)(struct smalti_job *job);
	int64_t ahead;  /* of so many jobs that are earlier; set before it is opened */
	int64_t number; /* of the queue's */
	bool doomed;    /* all ranks know that it fails */
	struct smalti_ranks_outcomes *outcomes;   /* on other ranks, as rank 0 hears of them */
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
	int64_t doomed;    /* the number of a job that fails on another rank, which is to be submitted here */
	int64_t active, active_bytes;
	struct smalti_mutex mutex; /* guards what follows */
	struct smalti_condition any;
	struct smalti_job *oldest;    /* active, in order of submission */
	struct smalti_job *completed; /* of those whose last task has ended, the last one first */
	struct smalti_job *elsewhere; /* the same, but it has not on other ranks */
};

/* `max_jobs`: active at a time, whatever the memory. */
int smalti_queue_open(struct smalti_queue *queue, struct smalti_session *session, int64_t max_jobs,
		      struct smalti_error *error);
/* When no job is active. One that is all zeros was never opened. */
void smalti_queue_close(struct smalti_queue *queue);

/* Waits until there is room for one more job, or no job is active. */
void smalti_queue_admit(struct smalti_queue *queue, int64_t bytes, int64_t memory);
/* Completes what can be, after waiting for something up to a tenth of a second, and reports progress. */
void smalti_queue_wait(struct smalti_queue *queue);
/* Completes what can be, and reports progress. */
void smalti_queue_serve(struct smalti_queue *queue);
/* Has jobs that fail on one rank do nothing more on any: as the functions above do, for waits of other kinds.
 */
void smalti_queue_exchange_failures(struct smalti_queue *queue);
/* Waits until no job is active. Several threads may. */
void smalti_queue_drain(struct smalti_queue *queue);
/* Active jobs fail soon, and so do later ones. Any thread and signal handlers may call it. */
void smalti_queue_cancel(struct smalti_queue *queue);

/* Makes a job active whose `bytes` and `complete` are set: creates its task group, into which tasks are
 * inserted from here on; earlier jobs go first, but for those that it is ahead of. After -1 there is no job.
 * Until the job is submitted, by the same thread, no other thread inserts tasks of the session. */
int smalti_job_open(struct smalti_queue *queue, struct smalti_job *job, const char *name,
		    struct smalti_error *error);
/* No more tasks. */
void smalti_job_submit(struct smalti_job *job);
