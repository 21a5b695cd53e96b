/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "simulation/machine.h"

/* The precision of each kind of work, and whether there are products of integers, too. */
struct smalti_work_precisions {
	int of[SMALTI_WORKS];
	bool int8;
};

/* The machine that the program simulates, and the precisions. smalti_simulation_open() chooses them before a
 * session is opened. */
struct smalti_chosen {
	struct smalti_simulated_machine machine;
	struct smalti_work_precisions precisions;
};
extern struct smalti_chosen smalti_chosen;
