/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "host/environment.h"
#include "rt/session.h"

/* Returns the policy that the environment, else the options choose; NULL: none. */
const char *smalti_session_policy(const struct smalti_session_options *options);

/* Tells whether ranks may run on the same cores. Bound threads would all be on the first of them. */
bool smalti_session_oversubscribes(const struct smalti_session *session);

/* Sets the variables of StarPU, hwloc and OpenCL as the session needs them while StarPU starts; what the user
 * has set stays. Opens the directory of measurements. */
int smalti_session_set_variables(struct smalti_session *session, const struct smalti_session_options *options,
				 struct smalti_environment *changes, struct smalti_error *error);
