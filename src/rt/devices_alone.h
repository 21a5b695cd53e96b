/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/session.h"

struct starpu_task;

/* CPUs beside devices take tasks that devices can run only if that shortens the work. Devices do it alone for
 * reproducible results, and where all CPUs together gain less than one of their tasks may cost. */

/* Decides that for a session whose speeds are known. A policy that was chosen decides by itself. */
void smalti_devices_alone_open(struct smalti_session *session, bool policy_chosen);

/* Tells whether devices do nearly all that they can do, so that nothing is made ahead for CPUs. */
bool smalti_devices_lead(const struct smalti_session *session);

/* Tells whether devices work alone. Over several ranks they do not, since all insert the same tasks. */
bool smalti_devices_alone(const struct smalti_session *session);

/* Takes CPUs from a task that a device has room for. For reproducible results other tasks run only on
 * CPUs. */
void smalti_devices_alone_restrict(const struct smalti_session *session, struct starpu_task *task);

/* Returns the place that runs everything that devices can; SMALTI_ANYWHERE where there are several. */
int smalti_devices_alone_place(const struct smalti_session *session);
