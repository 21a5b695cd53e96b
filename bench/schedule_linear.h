/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/schedule.h"

/* Returns the optimum of the linear program of a schedule whose tasks may be split among places in any
 * shares, but each begins after those that it waits for, and the weights of tasks on devices come over the
 * links: the area bound, the longest chain, and weights in one.
 * NAN: it has too many tasks, no optimum was found, or Smalti was built without GLPK. */
double smalti_schedule_linear(const struct smalti_task_schedule *schedule);
