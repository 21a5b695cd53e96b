/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/simulate.h"
#include "rt/simulation.h"

/* Simulates and prints a line of JSON. */
int smalti_case_run(const struct smalti_simulate_options *options, struct smalti_error *error);

/* Prints the line; a strategy of NULL is none. */
int smalti_case_print(const struct smalti_simulate_options *options, const char *strategy,
		      const struct smalti_simulation *simulation, const char *machine,
		      struct smalti_error *error);
