/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "simulation/machine.h"

/* The machine that the program simulates, and the precision of each kind of work.
 * smalti_simulation_open() chooses them before a session is opened. */
struct smalti_chosen {
	struct smalti_simulated_machine machine;
	int precisions[SMALTI_WORKS];
};
extern struct smalti_chosen smalti_chosen;
