/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_RT_THROTTLE_H
#define SMALTI_RT_THROTTLE_H

#include "rt/task_group.h"

/* A task and the tiles it brings cost some 12 kB from insertion to end, so only so many are in flight: enough
 * for any number of workers to look ahead, few enough to stay small beside the tiles. */
enum { SMALTI_MOST_TASKS = 6000 };

/* One thread inserts at a time: what it holds from the first task of a graph to the last, and while it
 * changes what belongs to several graphs. Recursive. */
void smalti_insertion_begin(void);
void smalti_insertion_end(void);

/* By the inserting thread, before a task: blocks while there are too many, until a quarter has ended. */
void smalti_throttle_enter(void);
/* A task has ended (or was not inserted after all). */
void smalti_throttle_leave(void);
/* Tasks in flight. Any thread. */
int64_t smalti_throttle_tasks(void);

/* By the inserting thread: blocks until no more than `most` of the task group's tasks are left. What is
 * inserted in the order in which memory is freed then takes little more than it would in that order. */
void smalti_throttle_task_group(struct smalti_task_group *task_group, int64_t most);

/* What the inserting thread does now and then while it is blocked, so that finished work is not kept waiting;
 * it must not insert. Of the calling thread alone. NULL: nothing. */
void smalti_throttle_serve(void (*serve)(void *user), void *user);

#endif
