/* SPDX-License-Identifier: Apache-2.0 */
#include "ranks/ranks.h"
#include "train/trainer.h"

static const int64_t FIRST_TIMESTEP = 50, TIMESTEP_STRIDE = 100;

/* Evaluates one item at all timesteps, with noise that does not depend on the step. */
static int evaluate_item(struct smalti_trainer *trainer, struct smalti_trained *graph,
			 const struct smalti_training_sample *sample, int64_t place,
			 struct smalti_loss_parts parts[SMALTI_EVALUATED_TIMESTEPS],
			 struct smalti_error *error)
{
	struct smalti_task_group *task_group =
	    smalti_task_group_new(trainer->session, "evaluation", 0, error);
	if (!task_group)
		return -1;
	smalti_task_group_depends_on(task_group, trainer->task_group);
	const struct smalti_step_shape shape = smalti_step_shape_of(trainer, sample, 1);
	int status = smalti_step_plan_choose(trainer, &shape, &trainer->plan, error);
	for (int i = 0; i < SMALTI_EVALUATED_TIMESTEPS && status == 0; i++) {
		if (trainer->plan.bounded && i % trainer->plan.micro_batch == 0)
			smalti_task_group_wait(task_group);
		const int64_t t = FIRST_TIMESTEP + i * TIMESTEP_STRIDE;
		const struct smalti_sample_work work = {
		    .sample = sample,
		    .timestep = t,
		    .seed = smalti_stream_seed(trainer->options->seed, SMALTI_STREAM_EVALUATION, (uint64_t)t,
					       (uint64_t)place),
		    .weight = 1,
		    .replica = i % trainer->strategy.parts[SMALTI_AXIS_BRANCH],
		    .parts = &parts[i]};
		status = smalti_sample_insert(trainer, graph, task_group, &work, error);
	}
	smalti_task_group_wait(task_group);
	if (status == 0)
		status = smalti_task_group_status(task_group, error);
	smalti_task_group_free(task_group);
	return smalti_ranks_agree(status, NULL, error);
}

static void add_parts(const struct smalti_loss_parts *parts, struct smalti_evaluation *evaluation)
{
	for (int i = 0; i < SMALTI_EVALUATED_TIMESTEPS; i++) {
		evaluation->mse[i] += parts[i].mse;
		evaluation->vb[i] += parts[i].vb;
	}
	evaluation->items++;
}

static void divide(struct smalti_evaluation *evaluation)
{
	for (int i = 0; i < SMALTI_EVALUATED_TIMESTEPS; i++) {
		evaluation->mse[i] /= (double)evaluation->items;
		evaluation->vb[i] /= (double)evaluation->items;
		evaluation->mean_mse += evaluation->mse[i] / SMALTI_EVALUATED_TIMESTEPS;
		evaluation->mean_vb += evaluation->vb[i] / SMALTI_EVALUATED_TIMESTEPS;
	}
}

int smalti_trainer_evaluate(struct smalti_trainer *trainer, struct smalti_training_data *held_out,
			    bool averages, struct smalti_evaluation *evaluation, struct smalti_error *error)
{
	struct smalti_trained *graph = averages ? trainer->average_graph : trainer->graph;
	const int64_t max = trainer->options->held_out_items;
	struct smalti_loss_parts parts[SMALTI_EVALUATED_TIMESTEPS] = {{.mse = 0}};
	struct smalti_training_sample sample = {.index = 0};
	int status = smalti_training_data_rewind(held_out, error);
	*evaluation = (struct smalti_evaluation){0};
	smalti_trained_begin_step(graph, trainer->task_group);
	while (status == 0 && (max == 0 || evaluation->items < max)) {
		const int found = smalti_training_data_item(held_out, &sample, error);
		struct smalti_ranks_vote vote = {.digest = found > 0 ? (uint64_t)sample.index + 1 : 0};
		status = smalti_ranks_agree(found < 0 ? -1 : 0, &vote, error);
		if (found <= 0)
			break;
		if (status == 0)
			status = evaluate_item(trainer, graph, &sample, evaluation->items, parts, error);
		smalti_training_sample_free(&sample);
		if (status == 0)
			add_parts(parts, evaluation);
	}
	smalti_trained_end_step(graph);
	if (status < 0)
		return -1;
	if (evaluation->items == 0)
		return smalti_fail(error, SMALTI_EINVAL, "%s: has no item with all features to evaluate on",
				   trainer->options->held_out);
	divide(evaluation);
	return 0;
}
