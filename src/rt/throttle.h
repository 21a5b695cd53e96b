/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/task_group.h"

/* A task and its tiles cost about 12 kB from insertion to end, so the number of tasks in a session is
 * limited: enough for the workers of a place to look ahead, few enough to be small beside the tiles. A graph
 * may have all tasks of a place before those of the next one, so each place has this number, up to the
 * devices of one machine. */
enum { SMALTI_MAX_TASKS = 6000, SMALTI_THROTTLED_PLACES = 16 };

/* A session's throttle: who may insert, and how many tasks there are. */
struct smalti_throttle {
	pthread_mutex_t inserting; /* held by the thread that inserts; it guards serve and user */
	void (*serve)(void *user);
	void *user;
	struct smalti_mutex mutex; /* guards what follows */
	struct smalti_condition room;
	int64_t max;               /* of the tasks */
	int64_t tasks;             /* inserted and not ended */
	bool waits_for_task_group; /* each end of a task wakes the waiting thread */
};

void smalti_throttle_open(struct smalti_throttle *throttle);
void smalti_throttle_close(struct smalti_throttle *throttle);
/* Sets the number of places, or of graphs that are inserted one after the other and run at the same time,
 * while there are no tasks; it is 1 at first. */
void smalti_throttle_places(struct smalti_throttle *throttle, int places);

/* Begin and end insertion. One thread inserts at a time, from the first task of a graph to the last, and
 * while it changes what several graphs share. Recursive. */
void smalti_insertion_begin(struct smalti_throttle *throttle);
void smalti_insertion_end(struct smalti_throttle *throttle);

/* Enters a task; blocks while there are too many, until a quarter of a place's have ended. The inserting
 * thread calls it. */
void smalti_throttle_enter(struct smalti_throttle *throttle);
/* Notes that a task has ended (or was not inserted after all). */
void smalti_throttle_leave(struct smalti_throttle *throttle);
/* Returns the number of tasks inserted and not ended. Any thread. */
int64_t smalti_throttle_tasks(struct smalti_throttle *throttle);

/* Blocks until at most `max` of the task group's tasks are left. Tasks inserted in the order in which memory
 * is freed then take little more memory than if they ran in that order. The inserting thread calls it. */
void smalti_throttle_task_group(struct smalti_throttle *throttle, struct smalti_task_group *task_group,
				int64_t max);

/* Sets what the inserting thread does regularly while it is blocked, so that completed work does not wait; it
 * must not insert. NULL: nothing. */
void smalti_throttle_serve(struct smalti_throttle *throttle, void (*serve)(void *user), void *user);
