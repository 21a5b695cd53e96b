/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "jobs/plan.h"

/* The step cache of a request: smalti/generate.h. */

/* Reads it, and a bound's table, behind the sampler, the strategy and the adapters. */
int smalti_plan_step_cache_read(struct smalti_plan *plan, struct smalti_error *error);
/* Returns what a step cache's table is of. */
struct smalti_step_cache_key smalti_plan_step_key(const struct smalti_plan *plan);
