/* SPDX-License-Identifier: Apache-2.0 */
#include "jobs/account.h"
#include "jobs/plan_strategy.h"
#include "rt/ranks.h"

void smalti_account_plan(const struct smalti_plan *plan, struct smalti_task_group *task_group,
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
			smalti_moves_plan(task_group, place, loads[place].moves);
}

static struct smalti_place_bytes bytes_of(const double *moves)
{
	return (struct smalti_place_bytes){.keys = moves[SMALTI_MOVE_KEYS],
					   .heads = moves[SMALTI_MOVE_HEADS],
					   .sums = moves[SMALTI_MOVE_SUMS],
					   .stream = moves[SMALTI_MOVE_STREAM],
					   .modulation = moves[SMALTI_MOVE_MODULATION],
					   .halo = moves[SMALTI_MOVE_HALO]};
}

void smalti_account_tell(const struct smalti_plan *plan, const struct smalti_task_group *task_group,
			 const struct smalti_image_callbacks *receiver)
{
	const struct smalti_moves *moves = &task_group->moves;
	const int64_t steps = plan->sampler->steps;
	for (int place = 0; receiver->place && moves->planned && place < moves->places; place++) {
		struct smalti_place_account account = {
		    .planned = bytes_of(moves->planned + place * SMALTI_MOVES),
		    .pass = bytes_of(smalti_moves_at(moves, steps, place)),
		    .decoding = bytes_of(smalti_moves_at(moves, steps + 1, place))};
		smalti_session_place_name(task_group->session, place, account.name);
		for (int64_t stage = 0; stage < moves->stages; stage++)
			account.weights += smalti_moves_at(moves, stage, place)[SMALTI_MOVE_WEIGHTS];
		receiver->place(receiver->user, &account);
	}
}
