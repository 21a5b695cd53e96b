/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

#include <stdatomic.h>

/* Lost devices: they had an error after which they compute nothing more. What they hold is undefined: a task
 * group fails when it reads a tile that has no other copy. Their tasks do nothing and fail their task groups;
 * tasks inserted later run elsewhere, if they can. This needs StarPU with STARPU_LOST_DEVICES
 * (scripts/lib/starpu/lost-devices.patch); any other ends the program. */

struct smalti_session;
struct smalti_task_group;
struct starpu_task;

/* StarPU's memory nodes. Each node that can be lost has a bit; simulated devices cannot be lost. */
#ifdef SMALTI_SIMGRID
enum { SMALTI_MAX_NODES = 130 };
#else
enum { SMALTI_MAX_NODES = 32 };
#endif

/* A session's lost devices. */
struct smalti_lost {
	bool reconsiders;                 /* the policy does: see session/policies.h */
	atomic_uint nodes;                /* bit n: the device of memory node n is lost */
	pthread_mutex_t mutex;            /* guards what follows */
	struct smalti_task_group *groups; /* a list of the existing groups */
	int64_t groups_made;
	struct smalti_error cause[SMALTI_MAX_NODES]; /* constant once the bit is set */
};

void smalti_lost_open(struct smalti_lost *lost);
void smalti_lost_close(struct smalti_lost *lost);
/* Watches from starpu_init() to starpu_shutdown(). */
void smalti_lost_watch(struct smalti_session *session); /* NULL: stops */

/* Register a task group, which is found by its number, from its beginning to its end. @{ */
void smalti_lost_add(struct smalti_lost *lost, struct smalti_task_group *task_group);
void smalti_lost_remove(struct smalti_lost *lost, const struct smalti_task_group *task_group);
/* @} */

/* Fails the task group if the device of this memory node is lost; returns whether it is. */
bool smalti_lost_fails(struct smalti_task_group *task_group, unsigned memory_node);
/* Fails with the cause if any device is lost. */
int smalti_lost_check(const struct smalti_lost *lost, struct smalti_error *error);
bool smalti_lost_has(const struct smalti_lost *lost, unsigned memory_node);
/* Tells whether a task that knows its tiles is not for the device of this memory node: it is lost, and
 * another worker can run the task. */
bool smalti_lost_avoids(const struct smalti_lost *lost, struct starpu_task *task, unsigned memory_node);
/* Prepares a task that will be submitted next. */
void smalti_lost_prepare(const struct smalti_lost *lost, struct starpu_task *task);
