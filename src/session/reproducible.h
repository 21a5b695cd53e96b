/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "rt/session.h"

/* Different kinds of devices compute different bits. For bits that do not depend on the policy, a session may
 * require that tasks that devices can run do so on devices of one kind (rt/devices_alone.h), and all others
 * on CPUs. */

/* Checks that the session's devices are of one kind; StarPU is running. -1 with SMALTI_EUNSUPPORTED. */
int smalti_reproducible_check(const struct smalti_session *session, struct smalti_error *error);
