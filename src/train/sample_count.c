/* SPDX-License-Identifier: Apache-2.0 */
#include "train/sample_count.h"
#include "rt/counting.h"
#include "rt/session.h"

static int make_gradients(struct smalti_sample_count *count, struct smalti_error *error)
{
	const struct smalti_parameters *parameters = count->trainer.parameters;
	count->gradients = smalti_calloc(parameters->count, sizeof(struct smalti_tile *), error);
	for (int64_t i = 0; count->gradients && i < parameters->count; i++)
		count->gradients[i] = smalti_parameter_tile(&parameters->list[i], count->trainer.task_group);
	return count->gradients ? 0 : -1;
}

int smalti_sample_count_open(struct smalti_sample_count *count, const struct smalti_trainer *trainer,
			     struct smalti_error *error)
{
	struct smalti_trainer *counted = &count->trainer;
	*count = (struct smalti_sample_count){.trainer = {.options = trainer->options,
							  .config = trainer->config,
							  .strategy = trainer->strategy,
							  .features = trainer->features,
							  .scaling_factor = trainer->scaling_factor}};
	if (!(counted->session = smalti_session_open_counting(1, false, error)) ||
	    !(counted->task_group = smalti_task_group_new(counted->session, "count", 0, error)) ||
	    smalti_trainer_make_graph(counted, error) < 0)
		return -1;
	return make_gradients(count, error);
}

int64_t smalti_sample_count_bytes(struct smalti_sample_count *count, const struct smalti_step_shape *shape,
				  const struct smalti_step_plan *plan, struct smalti_error *error)
{
	struct smalti_trainer *trainer = &count->trainer;
	const struct smalti_training_sample sample = {
	    .height = shape->height, .width = shape->width, .tokens = shape->text_tokens};
	struct smalti_tile *const *gradients = count->gradients;
	struct smalti_loss_parts parts;
	struct smalti_sample_work work = smalti_sample_work_of(trainer, &sample, 0);
	work.gradients = &gradients;
	work.parts = &parts;
	trainer->plan = *plan;
	smalti_counting_mark(trainer->session->counting);
	if (smalti_sample_insert(trainer, trainer->graph, trainer->task_group, &work, error) < 0 ||
	    smalti_task_group_status(trainer->task_group, error) < 0)
		return -1;
	return trainer->session->counting->max;
}

void smalti_sample_count_close(struct smalti_sample_count *count)
{
	struct smalti_trainer *trainer = &count->trainer;
	for (int64_t i = 0; count->gradients && i < trainer->parameters->count; i++)
		smalti_tile_release(count->gradients[i]);
	free(count->gradients);
	smalti_trained_free(trainer->graph);
	smalti_parameters_free(trainer->parameters);
	smalti_parameters_free(trainer->base);
	smalti_task_group_free(trainer->task_group);
	smalti_session_close(trainer->session, NULL);
}
