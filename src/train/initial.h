/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/parameters.h"

/* Inserts the tasks that give parameters the values that training from scratch begins with
 * (docs/training.md). */
void smalti_initial_values(const struct smalti_parameters *parameters, struct smalti_task_group *task_group,
			   uint64_t seed);
