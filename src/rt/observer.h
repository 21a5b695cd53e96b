/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

struct smalti_task_group;
struct smalti_tile;
struct starpu_task;
enum smalti_access;

/* An observer of a session's tasks: a row of its list. A function may be NULL. */
struct smalti_observer {
	/* The inserting thread says: the next task accesses the tile so; it receives the tile from another
	 * place; it is inserted. */
	void (*uses)(void *user, const struct smalti_tile *tile, enum smalti_access access);
	void (*receives)(void *user, const struct smalti_tile *tile);
	void (*inserts)(void *user, struct starpu_task *task);
	/* Its worker says that the task has ended. */
	void (*ended)(void *user, struct starpu_task *task, int worker);
	/* Any thread says: the task group's tasks have ended, and it goes. */
	void (*leaves)(void *user, const struct smalti_task_group *task_group);
	void *user;
};

enum { SMALTI_OBSERVERS = 5 };

/* Tells the observers of a session, in the order of the list: smalti_observe(session, ended, task,
 * worker). */
#define smalti_observe(session, event, ...)                                                                  \
	for (const struct smalti_observer *observer_ = (session)->observers;                                 \
	     observer_ < (session)->observers + (session)->observer_count; observer_++)                      \
		if (observer_->event)                                                                        \
	observer_->event(observer_->user, __VA_ARGS__)
