/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/session.h"

/* Keeps the tasks that ended last, for programs that watch a session. */
struct smalti_recent_task {
	int64_t number;      /* counts all tasks that were kept, in the order of their ends */
	const char *name;    /* static */
	char task_group[32]; /* that it was part of */
	int worker;
	double began, ended; /* smalti_now() */
};

/* Keeps the last `capacity` tasks of the session, from here on until it is closed. Called once, before any
 * task is inserted. */
int smalti_recent_keep(struct smalti_session *session, int64_t capacity, struct smalti_error *error);
void smalti_recent_free(struct smalti_recent *recent);
/* Adds a task that has just ended, on the worker's thread. */
void smalti_recent_add(struct smalti_recent *recent, int worker, const char *name, const char *task_group,
		       double seconds);
/* Copies at most `count` kept tasks from number *from on, the oldest first; *from becomes the next number. A
 * number that no task can have yet is of another session, and read as 0. Returns how many it copied. Any
 * thread. */
int64_t smalti_recent_read(struct smalti_recent *recent, int64_t *from, int64_t count,
			   struct smalti_recent_task *tasks);
