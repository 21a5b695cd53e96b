/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/task_group.h"

/* A task and the tiles it brings cost some 12 kB from insertion to end, so a session has only so many at a
 * time: enough for any number of workers to look ahead, few enough to stay small beside the tiles. */
enum { SMALTI_MOST_TASKS = 6000 };

/* A session's: who may insert, and how many tasks there are. */
struct smalti_throttle {
	pthread_mutex_t inserting; /* held by the thread that inserts; it guards serve and user */
	void (*serve)(void *user);
	void *user;
	struct smalti_mutex mutex; /* guards what follows */
	struct smalti_condition room;
	int64_t tasks;             /* inserted and not ended */
	bool waits_for_task_group; /* each end of a task is of interest */
};

void smalti_throttle_open(struct smalti_throttle *throttle);
void smalti_throttle_close(struct smalti_throttle *throttle);

/* One thread inserts at a time: what it holds from the first task of a graph to the last, and while it
 * changes what belongs to several graphs. Recursive. */
void smalti_insertion_begin(struct smalti_throttle *throttle);
void smalti_insertion_end(struct smalti_throttle *throttle);

/* By the inserting thread, before a task: blocks while there are too many, until a quarter has ended. */
void smalti_throttle_enter(struct smalti_throttle *throttle);
/* A task has ended (or was not inserted after all). */
void smalti_throttle_leave(struct smalti_throttle *throttle);
/* Tasks inserted and not ended. Any thread. */
int64_t smalti_throttle_tasks(struct smalti_throttle *throttle);

/* By the inserting thread: blocks until no more than `most` of the task group's tasks are left. What is
 * inserted in the order in which memory is freed then takes little more than it would in that order. */
void smalti_throttle_task_group(struct smalti_throttle *throttle, struct smalti_task_group *task_group,
				int64_t most);

/* What the inserting thread does now and then while it is blocked, so that completed work is not kept
 * waiting; it must not insert. NULL: nothing. */
void smalti_throttle_serve(struct smalti_throttle *throttle, void (*serve)(void *user), void *user);
