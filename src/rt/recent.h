/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/session.h"

/* The tasks that have run last, for whoever watches a session at work. */
struct smalti_recent_task {
	int64_t number;      /* of all tasks since they are kept, in the order of their ends */
	const char *name;    /* static */
	char task_group[32]; /* what it was for */
	int worker;
	double began, ended; /* smalti_now() */
};

/* Keeps the last `capacity` tasks of the session from here on, until it is closed. Once, before any is
 * inserted. */
int smalti_recent_keep(struct smalti_session *session, int64_t capacity, struct smalti_error *error);
void smalti_recent_free(struct smalti_recent *recent);
/* Of the worker's thread: a task has ended that took so long. */
void smalti_recent_add(struct smalti_recent *recent, int worker, const char *name, const char *task_group,
		       double seconds);
/* Copies those from number *from on that are still kept, `count` at most, the first ones first; *from becomes
 * the number behind them. A number that no task can have yet is of another session, and read as 0. Returns
 * how many. Any thread. */
int64_t smalti_recent_read(struct smalti_recent *recent, int64_t *from, int64_t count,
			   struct smalti_recent_task *tasks);
