/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/cost.h"
#include "jobs/plan.h"

/* Gathers the facts that `auto` needs, if a rank's request wants that. All ranks call it before the first
 * plan. With one rank it does nothing. */
int smalti_plan_strategy_prepare(struct smalti_session *session, const struct smalti_request *request,
				 struct smalti_error *error);
/* Reads the request's strategy and shares into the plan, whose latents have a size; `auto` becomes a name and
 * numbers, in the plan's request, too. */
int smalti_plan_strategy_read(struct smalti_plan *plan, struct smalti_error *error);

/* Returns the denoising that the plan spreads. */
struct smalti_denoising smalti_plan_denoising(const struct smalti_plan *plan);
