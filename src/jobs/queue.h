/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "ranks/ranks.h"
#include "rt/session.h"

/* The active jobs. Each is a graph of tasks with its own task group; several run at a time, as memory allows.
 * A job's last task ends on a worker; the thread that submits or waits then completes the job. */
struct smalti_queue;

struct smalti_job {
	struct smalti_queue *queue;
	struct smalti_task_group *task_group;
	int64_t bytes; /* most bytes that it holds */
	/* Frees a submitted job, once, after its last task; the queue frees its task group. It must not
	 * submit. */
	void (*complete)(struct smalti_job *job);
	int64_t ahead;                            /* of so many earlier jobs; set before it is opened */
	int64_t number;                           /* in the queue */
	bool doomed;                              /* all ranks know that it fails */
	struct smalti_ranks_outcomes *outcomes;   /* on other ranks; rank 0 hears of them */
	struct smalti_job *next, *next_completed; /* in the queue's lists */
};

struct smalti_queue {
	struct smalti_session *session;
	struct smalti_task_group *cancelled; /* without tasks: failed when the queue is cancelled */
	int64_t max_jobs;
	/* Reports progress about ten times a second, on the thread that submits or waits; NULL: none. */
	void (*progress)(void *user);
	void *user;
	int64_t submitted; /* ever */
	int64_t doomed;    /* the number of a job that fails on another rank and will be submitted here */
	int64_t active, active_bytes;
	int64_t paused;            /* jobs that get more tasks, but not now */
	struct smalti_mutex mutex; /* guards what follows */
	struct smalti_condition any;
	struct smalti_job *oldest;    /* active, in order of submission */
	struct smalti_job *completed; /* jobs whose last task has ended, the last one first */
	struct smalti_job *elsewhere; /* such jobs whose last task has not ended on other ranks */
};

/* Allows `max_jobs` active jobs, whatever the memory. */
int smalti_queue_open(struct smalti_queue *queue, struct smalti_session *session, int64_t max_jobs,
		      struct smalti_error *error);
/* Closes a queue without active jobs. A queue that is all zeros was never opened. */
void smalti_queue_close(struct smalti_queue *queue);

/* Waits until there is room for one more job, or no job is active. */
void smalti_queue_admit(struct smalti_queue *queue, int64_t bytes, int64_t memory);
/* Waits up to a tenth of a second for a job to end, completes what has ended, and reports progress. */
void smalti_queue_wait(struct smalti_queue *queue);
/* Completes the jobs that have ended, and reports progress. */
void smalti_queue_serve(struct smalti_queue *queue);
/* Cancels jobs that fail on another rank, as the functions above do: for other waits. */
void smalti_queue_exchange_failures(struct smalti_queue *queue);
/* Waits until no job is active. Several threads may. */
void smalti_queue_drain(struct smalti_queue *queue);
/* Makes active and later jobs fail soon. Any thread and signal handlers may call it. */
void smalti_queue_cancel(struct smalti_queue *queue);

/* Makes a job active whose `bytes` and `complete` are set. Its new task group takes tasks from now on;
 * earlier jobs go first, except those that it is ahead of. After -1 there is no job. Until this thread
 * submits the job, no other inserts tasks of the session. */
int smalti_job_open(struct smalti_queue *queue, struct smalti_job *job, const char *name,
		    struct smalti_error *error);
/* Says that the job gets no more tasks. */
void smalti_job_submit(struct smalti_job *job);

/* Let other threads insert tasks, and wait to insert this job's again, on this thread or another. Meanwhile
 * waits for room do not keep other threads from inserting. @{ */
void smalti_job_pause(struct smalti_job *job);
void smalti_job_resume(struct smalti_job *job);
/* @} */
