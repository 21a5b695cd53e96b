/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/session.h"

/* The policy "replay:FILE": each task runs on the worker of a schedule's file (simulation/schedule_file.h),
 * in the order of the file. It has to be the schedule of the same tasks, in the same order of insertion, on
 * the same workers. A task that the schedule does not expect fails its task group and all later ones, which
 * then run without a schedule. So does a schedule that leaves nothing to do for a minute: it has a task wait
 * for one that is inserted later. */
struct smalti_replay;
struct starpu_sched_policy;

/* Returns the FILE of the policy's name; NULL: another policy. */
const char *smalti_replay_file(const char *policy);

/* Reads the schedule for a session that is being opened, and observes its tasks. */
struct smalti_replay *smalti_replay_open(struct smalti_session *session, const char *path,
					 struct smalti_error *error);
struct starpu_sched_policy *smalti_replay_policy(void);
/* Begins, once StarPU runs; -1 with SMALTI_EINVAL: the schedule is of other workers. */
int smalti_replay_begin(struct smalti_replay *replay, struct smalti_error *error);
/* Returns the place of the task that is inserted next; `place` if the schedule has none, or without a
 * replay. */
int smalti_replay_place(const struct smalti_replay *replay, int place);
/* Returns how urgent the weights of that task are: those of tasks that begin earlier are more urgent. */
int smalti_replay_urgency(const struct smalti_replay *replay);
/* Ends, when no more tasks are inserted. -1 with SMALTI_EINVAL: not all that the schedule has were, which has
 * failed no task group. */
int smalti_replay_end(struct smalti_replay *replay, struct smalti_error *error);
void smalti_replay_free(struct smalti_replay *replay);
