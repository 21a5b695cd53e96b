/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "ranks/ranks.h"
#include "train/run_parts.h"

#include <math.h>

void smalti_training_run_tell(struct smalti_training_run *run, const char *note)
{
	run->result->progress.note = note;
	if (run->on_progress && run->on_progress(run->user, &run->result->progress) != SMALTI_TRAIN_CONTINUE)
		run->result->stopped = true;
	run->result->progress.note = NULL;
}

static int write_checkpoint(struct smalti_training_run *run, struct smalti_error *error)
{
	struct smalti_data_position position;
	if (smalti_ranks_own() > 0)
		return smalti_saved_follow(&run->trainer, error);
	if (smalti_training_data_position(run->data, &position, error) < 0) {
		smalti_ranks_give_up(error);
		return -1;
	}
	const int status = smalti_saved_write(run->options->output, &run->saved, &run->trainer, &position,
					      run->options->keep, error);
	free(position.waiting);
	return status;
}

static int save(struct smalti_training_run *run, struct smalti_error *error)
{
	const double began = smalti_now();
	if (run->saved_step == run->trainer.state.steps)
		return 0;
	if (smalti_ranks_agree(write_checkpoint(run, error), NULL, error) < 0)
		return -1;
	run->saved_step = run->trainer.state.steps;
	smalti_training_log_checkpoint(run->log, run->saved_step, smalti_saved_bytes(&run->trainer),
				       smalti_now() - began);
	return 0;
}

static int evaluate(struct smalti_training_run *run, struct smalti_error *error)
{
	struct smalti_evaluation evaluation;
	const int64_t step = run->trainer.state.steps;
	for (int averages = 0; averages <= (run->trainer.averages.count > 0); averages++) {
		if (smalti_trainer_evaluate(&run->trainer, run->held_out, averages, &evaluation, error) < 0)
			return -1;
		const char *of = averages ? "ema" : "weights";
		char note[160];
		snprintf(note, sizeof(note), "step %" PRId64 ", %s: mse %.6g, vb %.6g over %" PRId64 " items",
			 step, of, evaluation.mean_mse, evaluation.mean_vb, evaluation.items);
		smalti_training_log_evaluation(run->log, step, of, &evaluation);
		smalti_training_run_tell(run, note);
		if (!averages) {
			run->result->mse = evaluation.mean_mse;
			run->result->vb = evaluation.mean_vb;
		}
	}
	return 0;
}

static bool is_due(int64_t step, int64_t every)
{
	return every > 0 && step % every == 0;
}

/* Makes images from this step's checkpoint. */
static int make_sample_images(struct smalti_training_run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	const int64_t step = run->trainer.state.steps;
	char note[224];
	if (save(run, error) < 0 || smalti_sample_images_make(run->sample_images, step, error) < 0)
		return -1;
	snprintf(note, sizeof(note),
		 "step %" PRId64 ": %" PRId64 " sample images in %.80s/samples/step-%" PRId64, step,
		 o->samples.count, o->output, step);
	smalti_training_run_tell(run, note);
	return 0;
}

/* Opens sample images, and makes those that a stopped run did not make from its last checkpoint. */
static int begin_sample_images(struct smalti_training_run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	const int64_t step = run->trainer.state.steps;
	const bool due = is_due(step, o->samples.every) || step == 0 || step == o->steps;
	struct smalti_ranks_vote misses = {.any = due && smalti_ranks_own() == 0 &&
						  !smalti_sample_images_made(o, step)};
	if (o->samples.count == 0)
		return 0;
	if (smalti_ranks_agree(0, &misses, error) < 0)
		return -1;
	if (step >= o->steps && !misses.any)
		return 0;
	if (save(run, error) < 0)
		return -1;
	run->sample_images = smalti_sample_images_open(&run->trainer, step, error);
	if (!run->sample_images)
		return -1;
	return misses.any ? make_sample_images(run, error) : 0;
}

/* Tells whether any rank's caller has stopped the run. */
static bool stops(struct smalti_training_run *run, struct smalti_error *error)
{
	struct smalti_ranks_vote vote = {.any = run->result->stopped};
	if (smalti_ranks_agree(0, &vote, error) == 0)
		run->result->stopped = vote.any;
	return run->result->stopped;
}

static int make_step(struct smalti_training_run *run, struct smalti_error *error)
{
	struct smalti_train_result *result = run->result;
	struct smalti_training_state *state = &run->trainer.state;
	struct smalti_step_result step;
	const double began = smalti_now();
	if (smalti_training_run_next_batch(run, error) < 0)
		return -1;
	const double data_seconds = smalti_now() - began;
	const int64_t epoch = run->samples[run->options->batch - 1].epoch;
	if (smalti_trainer_step(&run->trainer, run->samples, &step, error) < 0)
		return -1;
	struct smalti_step_memory memory[SMALTI_MAX_RANKS];
	smalti_ranks_gather(&step.memory, sizeof(step.memory), memory);
	smalti_training_log_step(run->log, state, epoch, &step, memory, data_seconds);
	result->made++;
	result->skipped += step.skipped;
	result->progress = (struct smalti_train_progress){.step = state->steps,
							  .steps = run->options->steps,
							  .epoch = epoch,
							  .loss = step.loss,
							  .norm = step.norm,
							  .rate = step.rate,
							  .skipped = step.skipped};
	smalti_training_run_tell(run, NULL);
	return 0;
}

static int train(struct smalti_training_run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	const int64_t first = run->trainer.state.steps;
	if (first == 0 && run->held_out && evaluate(run, error) < 0)
		return -1;
	if (begin_sample_images(run, error) < 0)
		return -1;
	while (run->trainer.state.steps < o->steps && !stops(run, error)) {
		if (make_step(run, error) < 0)
			return -1;
		const int64_t step = run->trainer.state.steps;
		if (is_due(step, o->save_every) && save(run, error) < 0)
			return -1;
		if (run->held_out && (is_due(step, o->evaluate_every) || step == o->steps) &&
		    evaluate(run, error) < 0)
			return -1;
		if (run->sample_images && (is_due(step, o->samples.every) || step == o->steps) &&
		    make_sample_images(run, error) < 0)
			return -1;
	}
	run->result->stopped = run->trainer.state.steps < o->steps;
	return run->result->made > 0 ? save(run, error) : 0;
}

int smalti_train(struct smalti_session *session, const struct smalti_train_options *options,
		 smalti_train_callback *on_progress, void *user, struct smalti_train_result *result,
		 struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct smalti_training_run run = {.session = session,
					  .options = options,
					  .on_progress = on_progress,
					  .user = user,
					  .result = result,
					  .saved_step = -1};
	if (smalti_check_given(session, "session", error) < 0 ||
	    smalti_check_given(result, "result of the training", error) < 0 ||
	    smalti_train_check(options, error) < 0)
		return -1;
	*result = (struct smalti_train_result){.mse = NAN, .vb = NAN};
	const int status = smalti_training_run_open(&run, error) < 0 || train(&run, error) < 0 ? -1 : 0;
	if (status < 0)
		smalti_training_log_note(run.log, "failed", error->message);
	smalti_training_run_close(&run);
	return status;
}
