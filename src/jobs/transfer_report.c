/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/transfer_report.h"
#include "jobs/plan_strategy.h"
#include "ranks/ranks.h"

void smalti_transfer_report_plan(const struct smalti_plan *plan, struct smalti_task_group *task_group,
				 const int64_t *prompt_tokens, int branches)
{
	struct smalti_denoising denoising = smalti_plan_denoising(plan);
	struct smalti_error error = SMALTI_NO_ERROR;
	memcpy(denoising.prompt_tokens, prompt_tokens, (size_t)branches * sizeof(*prompt_tokens));
	if (plan->strategy.count == 0)
		return;
	const int places = smalti_plan_place_count(plan);
	SCOPED(free) struct smalti_load *loads = smalti_calloc(places, sizeof(*loads), &error);
	if (!loads || smalti_denoising_loads(&denoising, smalti_strategy_last(&plan->strategy),
					     smalti_ranks_count() == 1, places, loads, &error) < 0)
		smalti_task_group_break(task_group, &error);
	else
		for (int place = 0; place < places; place++)
			smalti_task_transfers_plan(task_group, place, loads[place].transfers);
}

static struct smalti_place_bytes bytes_of(const double *transfers)
{
	return (struct smalti_place_bytes){.keys = transfers[SMALTI_TRANSFER_KEYS],
					   .heads = transfers[SMALTI_TRANSFER_HEADS],
					   .sums = transfers[SMALTI_TRANSFER_SUMS],
					   .stream = transfers[SMALTI_TRANSFER_STREAM],
					   .modulation = transfers[SMALTI_TRANSFER_MODULATION],
					   .halo = transfers[SMALTI_TRANSFER_HALO]};
}

void smalti_transfer_report_send(const struct smalti_plan *plan, const struct smalti_task_group *task_group,
				 const struct smalti_image_callbacks *receiver)
{
	const struct smalti_task_transfers *transfers = &task_group->transfers;
	const int64_t steps = plan->sampler->steps;
	for (int place = 0; receiver->place && transfers->planned && place < transfers->places; place++) {
		struct smalti_transfer_report report = {
		    .planned = bytes_of(transfers->planned + place * SMALTI_TRANSFER_KINDS),
		    .pass = bytes_of(smalti_task_transfers_at(transfers, steps, place)),
		    .decoding = bytes_of(smalti_task_transfers_at(transfers, steps + 1, place))};
		smalti_session_place_name(task_group->session, place, report.name);
		for (int64_t stage = 0; stage < transfers->stages; stage++)
			report.weights +=
			    smalti_task_transfers_at(transfers, stage, place)[SMALTI_TRANSFER_WEIGHTS];
		receiver->place(receiver->user, &report);
	}
}
