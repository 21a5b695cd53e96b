/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/cost.h"
#include "jobs/plan.h"

/* Tells an image's task group the bytes that each place should receive in a pass, for captions of so many
 * tokens. */
void smalti_transfer_report_plan(const struct smalti_plan *plan, struct smalti_task_group *task_group,
				 const int64_t *prompt_tokens, int branches);
/* Tells the receiver the bytes that each place received, when the tasks have ended. */
void smalti_transfer_report_send(const struct smalti_plan *plan, const struct smalti_task_group *task_group,
				 const struct smalti_image_callbacks *receiver);
