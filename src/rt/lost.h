/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

/* Devices that are lost: that had an error which says that they compute nothing more. What they hold is
 * undefined, and a task group whose tiles have no other copy fails when one is read. Their tasks do nothing
 * and fail their task groups; tasks inserted later run elsewhere, if they can. It needs StarPU with
 * STARPU_LOST_DEVICES (scripts/lib/starpu.patch): any other ends the program then. */

struct smalti_session;
struct smalti_task_group;
struct starpu_task;

/* StarPU's memory nodes. Each of those that can be lost has a bit; a simulated device cannot. */
#ifdef SMALTI_SIMGRID
enum { SMALTI_MAX_NODES = 130 };
#else
enum { SMALTI_MAX_NODES = 32 };
#endif

/* A session's. */
struct smalti_lost {
	bool reconsiders;                 /* the policy: see rt/policies.h */
	atomic_uint nodes;                /* bit n: the device of memory node n is lost */
	pthread_mutex_t mutex;            /* guards what follows */
	struct smalti_task_group *groups; /* that are there, in a list */
	int64_t groups_made;
	struct smalti_error cause[SMALTI_MAX_NODES]; /* constant once the bit is set */
};

void smalti_lost_open(struct smalti_lost *lost);
void smalti_lost_close(struct smalti_lost *lost);
/* Around starpu_init() and starpu_shutdown(). */
void smalti_lost_watch(struct smalti_session *session); /* NULL: no more */

/* A task group from its beginning to its end: it is found by its number. @{ */
void smalti_lost_add(struct smalti_lost *lost, struct smalti_task_group *task_group);
void smalti_lost_remove(struct smalti_lost *lost, const struct smalti_task_group *task_group);
/* @} */

/* Whether the task group fails because the device of this memory node is lost. */
bool smalti_lost_fails(struct smalti_task_group *task_group, unsigned memory_node);
/* -1 with the cause if any device is lost. */
int smalti_lost_check(const struct smalti_lost *lost, struct smalti_error *error);
bool smalti_lost_has(const struct smalti_lost *lost, unsigned memory_node);
/* Whether a task that knows its tiles is not for the device of this memory node: it is lost, and another
 * worker can run the task. */
bool smalti_lost_avoids(const struct smalti_lost *lost, struct starpu_task *task, unsigned memory_node);
/* The task is about to be submitted. */
void smalti_lost_prepare(const struct smalti_lost *lost, struct starpu_task *task);
