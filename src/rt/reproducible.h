/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/session.h"

/* A kind of device computes other bits than another. So that they repeat whatever the policy chooses, a
 * session may say that a task that devices have a form of runs on devices (rt/devices_alone.h), which have to
 * be of one kind, and all others on CPUs. */

/* Whether the session's devices are: with StarPU running. -1 with SMALTI_EUNSUPPORTED. */
int smalti_reproducible_check(const struct smalti_session *session, struct smalti_error *error);
