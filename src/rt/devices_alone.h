/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/session.h"

struct starpu_task;

/* CPUs beside devices take what devices can do only if that shortens the work. Otherwise the devices do it
 * alone: for reproducible results, and where all CPUs together bring less than a task of theirs can cost. */

/* Decides that for a session whose speeds are known. A policy that was chosen decides by itself. */
void smalti_devices_alone_open(struct smalti_session *session, bool policy_chosen);

/* Tells whether devices work alone; over several ranks it says no, since all insert the same tasks. */
bool smalti_devices_alone(const struct smalti_session *session);

/* Takes CPUs from a task that a device has room for. For reproducible results others are CPUs' alone. */
void smalti_devices_alone_restrict(const struct smalti_session *session, struct starpu_task *task);

/* Returns the place that does all that devices can do; SMALTI_ANYWHERE where there are several. */
int smalti_devices_alone_place(const struct smalti_session *session);
