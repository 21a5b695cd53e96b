/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/cost.h"
#include "jobs/plan.h"

/* Has an image's task group know what should come to each place in a pass, for captions of so many tokens. */
void smalti_account_plan(const struct smalti_plan *plan, struct smalti_task_group *task_group,
			 const int64_t *prompt_tokens, int branches);
/* Tells the receiver what came to each place, when the tasks have ended. */
void smalti_account_tell(const struct smalti_plan *plan, const struct smalti_task_group *task_group,
			 const struct smalti_image_callbacks *receiver);
