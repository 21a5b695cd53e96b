/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

enum { SMALTI_AREA_KINDS = 130 };

/* Returns a lower bound on the time of any schedule: costs [tasks, kinds] are a task's times on a worker of
 * each kind (INFINITY: it cannot run there), of which there are counts[kind]; SMALTI_AREA_KINDS at most. */
double smalti_area_bound(const double *costs, int64_t tasks, int kinds, const int64_t *counts);
