/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "bench/schedule.h"

/* The optimum of the linear program of a schedule whose tasks may be shared among places as one likes, but
 * each of which begins behind those that it waits for: the area bound and the longest chain in one. NAN: more
 * tasks than it takes, no optimum was found, or there was no GLPK when Smalti was built. */
double smalti_schedule_linear(const struct smalti_schedule *schedule);
