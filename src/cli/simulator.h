/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/simulate.h"

#include <limits.h>

struct smalti_simulated_machine;

enum { SMALTI_POLICY_NAME = 4096 }; /* a schedule has a path */

/* Finds smalti-sim; -1 with SMALTI_ENODEV when it was not built. */
int smalti_simulator_find(char path[PATH_MAX], struct smalti_error *error);

/* Starts smalti-sim on the machine under a policy (NULL: that of a run where none is chosen) and returns the
 * object that it printed; free with cJSON_Delete(). NULL with SMALTI_ENODEV when it was not built. What it
 * says of a failure is the error. */
cJSON *smalti_simulator_run(const struct smalti_simulate_options *options, const char *policy,
			    const struct smalti_simulated_machine *machine, struct smalti_error *error);
