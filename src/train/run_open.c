/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "checkpoint/pipeline_directory.h"
#include "jobs/model.h"
#include "jobs/precision.h"
#include "ranks/ranks.h"
#include "train/adapter_config.h"
#include "train/identity.h"
#include "train/initial.h"
#include "train/run_parts.h"

#include <xxhash.h>

enum { CONFIG_BYTES = 1 << 20 };

static void on_damage(void *user, const char *message)
{
	struct smalti_training_run *run = user;
	char note[SMALTI_ERROR_LENGTH + 16];
	snprintf(note, sizeof(note), "left out: %s", message);
	smalti_training_log_note(run->log, "damaged", message);
	smalti_training_run_tell(run, note);
}

/* Returns the directory of the transformer that is tuned. */
static char *transformer_directory(const struct smalti_train_options *o, struct smalti_error *error)
{
	const char *whole =
	    o->model.directory || o->model.transformer ? o->model.directory : smalti_embedded_model(error);
	if (!whole && !o->model.transformer)
		return NULL;
	return smalti_model_component(o->model.transformer, whole, "transformer", error);
}

/* Opens the configuration, the first weights and their digest. */
static int open_weights(struct smalti_training_run *run, char digest[SMALTI_DIGEST_LENGTH + 1],
			struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	SCOPED(free) char *directory = o->initial ? NULL : transformer_directory(o, error);
	SCOPED(free)
	char *path = o->initial  ? smalti_format(error, "%s", o->initial)
		     : directory ? smalti_format(error, "%s/config.json", directory)
				 : NULL;
	if (!path || (directory && smalti_component_check(directory, error) < 0) ||
	    smalti_transformer_config_read(path, &run->config, error) < 0)
		return -1;
	run->saved.config = smalti_file_read(path, CONFIG_BYTES, &(size_t){0}, error);
	if (!run->saved.config)
		return -1;
	if (directory)
		run->checkpoint =
		    smalti_checkpoint_open(directory, SMALTI_STEM_DIFFUSERS, o->model.variant, error);
	if (directory && !run->checkpoint)
		return -1;
	const char *const files[] = {path};
	const struct smalti_checkpoint *const weights[] = {run->checkpoint};
	return smalti_digest(files, 1, weights, run->checkpoint ? 1 : 0, digest, error);
}

static int open_held_out(struct smalti_training_run *run, struct smalti_error *error)
{
	struct smalti_train_options options = *run->options;
	if (!run->options->held_out)
		return 0;
	options.data.directories = &run->options->held_out;
	options.data.directory_count = 1;
	run->held_out = smalti_training_data_open(&options, on_damage, run, error);
	return run->held_out
		   ? smalti_training_run_check_fit(run, run->held_out, run->options->held_out, error)
		   : -1;
}

/* Says that sums have another order than in the version that began the run. */
static void note_arithmetic(struct smalti_training_run *run)
{
	const cJSON *before = cJSON_GetObjectItemCaseSensitive(run->saved.identity, "arithmetic");
	if (!cJSON_IsNumber(before) || before->valuedouble != SMALTI_TRAINING_ARITHMETIC)
		smalti_training_run_tell(run,
					 "the run was begun with another version, which adds up gradients in "
					 "another order: the last bits will differ");
}

static void note_isa(struct smalti_training_run *run, const cJSON *identity)
{
	const char *before =
	    cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(run->saved.identity, "isa"));
	const char *now = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(identity, "isa"));
	char note[160];
	if (!before || strcmp(before, now) == 0)
		return;
	snprintf(
	    note, sizeof(note),
	    "the run was begun with the instruction set %.20s, now it is %.20s: the last bits will differ",
	    before, now);
	smalti_training_run_tell(run, note);
}

/* Compares the checkpoint's identity, if there is one, with the options. */
static int identify(struct smalti_training_run *run, const char *weights, struct smalti_error *error)
{
	cJSON *identity = smalti_training_identity(run->options, run->data, weights, error);
	struct smalti_error difference = SMALTI_NO_ERROR;
	if (!identity)
		return -1;
	if (run->saved.identity) {
		if (!cJSON_HasObjectItem(run->saved.identity, "null_tokens")) /* before there was a choice */
			cJSON_AddStringToObject(run->saved.identity, "null_tokens",
						smalti_null_tokens[SMALTI_NULL_TOKENS_OWN]);
		run->has_null_caption = smalti_training_run_same_null_caption(run, identity);
		note_isa(run, identity);
		note_arithmetic(run);
		smalti_identity_compare(run->options->output, run->saved.identity, identity,
					&smalti_training_rules, &difference);
	}
	cJSON_Delete(run->saved.identity);
	run->saved.identity = identity;
	if (difference.code && !run->options->allow_change)
		return smalti_pass(error, &difference);
	if (difference.code)
		smalti_training_run_tell(run,
					 "the run goes on with other options or data than it was begun with");
	return 0;
}

/* Reads the last checkpoint: rank 0 first, which locks the directory and removes what is unfinished. */
static int read_saved(struct smalti_training_run *run, struct smalti_error *error)
{
	const bool first = smalti_ranks_own() == 0;
	int found = 0;
	if (first)
		run->hold = smalti_hold_open(run->options->output, "trains", error);
	if (first)
		found = run->hold ? smalti_saved_read(run->options->output, &run->saved, error) : -1;
	if (smalti_ranks_agree(found < 0 ? -1 : 0, NULL, error) < 0)
		return -1;
	if (!first)
		found = smalti_saved_read(run->options->output, &run->saved, error);
	run->saved_step = found > 0 ? run->saved.step : -1;
	return found < 0 ? -1 : 0;
}

static int open_parts(struct smalti_training_run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	char weights[SMALTI_DIGEST_LENGTH + 1];
	if (smalti_precision_choose(o->model.precision, run->session, error) < 0 ||
	    read_saved(run, error) < 0)
		return -1;
	run->data = smalti_training_data_open(o, on_damage, run, error);
	if (!run->data || open_weights(run, weights, error) < 0 ||
	    smalti_training_run_check_fit(run, run->data, o->data.directories[0], error) < 0 ||
	    smalti_training_run_check_scaling(run, error) < 0 || open_held_out(run, error) < 0)
		return -1;
	return identify(run, weights, error);
}

static int set_data(struct smalti_training_run *run, struct smalti_error *error)
{
	smalti_trainer_set_data(&run->trainer, smalti_training_data_schema(run->data),
				&run->saved.null_caption);
	return smalti_training_run_check_memory(run, error);
}

/* Reads what an adapter changes, or all that is trained. */
static int read_weights(struct smalti_training_run *run, const struct smalti_parameters *parameters,
			struct smalti_error *error)
{
	return smalti_parameters_read(parameters, run->trainer.task_group, &run->config, run->checkpoint,
				      !run->trainer.base, error);
}

static int begin(struct smalti_training_run *run, struct smalti_error *error)
{
	struct smalti_trainer *trainer = &run->trainer;
	if (smalti_training_run_encode_null_caption(run, error) < 0 || set_data(run, error) < 0)
		return -1;
	if (!run->checkpoint || trainer->base)
		smalti_initial_values(trainer->parameters, trainer->task_group, run->options->seed);
	if (run->checkpoint &&
	    read_weights(run, trainer->base ? trainer->base : trainer->parameters, error) < 0)
		return -1;
	const int status = smalti_trainer_begin(trainer, error);
	return run->checkpoint && smalti_checkpoint_check(run->checkpoint, error) < 0 ? -1 : status;
}

static int go_on(struct smalti_training_run *run, struct smalti_error *error)
{
	run->saved.null_caption.width = run->config.caption_channels;
	if ((!run->has_null_caption && smalti_training_run_encode_null_caption(run, error) < 0) ||
	    set_data(run, error) < 0 ||
	    (run->trainer.base && read_weights(run, run->trainer.base, error) < 0))
		return -1;
	return smalti_saved_load(&run->saved, &run->trainer, error) < 0 ||
		       smalti_training_data_seek(run->data, &run->saved.position, error) < 0
		   ? -1
		   : 0;
}

static void on_log_lost(void *user, const struct smalti_error *error)
{
	struct smalti_training_run *run = user;
	char note[SMALTI_ERROR_LENGTH + 32];
	run->result->log = *error;
	snprintf(note, sizeof(note), "%s: the run goes on without it", error->message);
	smalti_training_run_tell(run, note);
}

static void open_log(struct smalti_training_run *run)
{
	const struct smalti_training_log_head head = {.run = run->options->output,
						      .session = run->session,
						      .identity = run->saved.identity,
						      .step = run->trainer.state.steps,
						      .steps = run->options->steps};
	if (smalti_ranks_own() == 0)
		run->log = smalti_training_log_open(&head, on_log_lost, run);
}

static int open_trainer(struct smalti_training_run *run, struct smalti_error *error)
{
	if (open_parts(run, error) < 0)
		return -1;
	run->samples = smalti_calloc(run->options->batch, sizeof(*run->samples), error);
	if (!run->samples ||
	    smalti_trainer_open(&run->trainer, run->session, run->options, &run->config, error) < 0)
		return -1;
	if (!run->trainer.base)
		return 0;
	free(run->saved.config);
	run->saved.config = smalti_adapter_config(&run->trainer, error);
	return run->saved.config ? 0 : -1;
}

int smalti_training_run_open(struct smalti_training_run *run, struct smalti_error *error)
{
	struct smalti_ranks_vote vote = {.digest = 0};
	const int opened = open_trainer(run, error) < 0 ? -1 : smalti_training_run_deal(run, error);
	SCOPED(free) char *identity = opened == 0 ? cJSON_PrintUnformatted(run->saved.identity) : NULL;
	vote.digest = identity ? XXH3_64bits(identity, strlen(identity)) + (uint64_t)run->saved_step : 0;
	if (smalti_ranks_agree(opened, &vote, error) < 0)
		return -1;
	const int begun = run->saved.directory ? go_on(run, error) : begin(run, error);
	if (smalti_ranks_agree(begun, NULL, error) < 0)
		return -1;
	smalti_checkpoint_close(run->checkpoint); /* it is no longer read, and its pages are memory */
	run->checkpoint = NULL;
	open_log(run);
	run->result->progress.step = run->trainer.state.steps;
	run->result->progress.steps = run->options->steps;
	return 0;
}

void smalti_training_run_close(struct smalti_training_run *run)
{
	struct smalti_data_position position;
	if (run->data && smalti_training_data_position(run->data, &position, NULL) == 0) {
		run->result->damaged = position.damaged;
		free(position.waiting);
	}
	smalti_sample_images_close(run->sample_images);
	smalti_trainer_close(&run->trainer);
	smalti_training_log_close(run->log);
	smalti_training_data_close(run->held_out);
	smalti_training_data_close(run->data);
	smalti_checkpoint_close(run->checkpoint);
	free(run->saved.null_caption.values);
	smalti_saved_free(&run->saved);
	free(run->samples);
	smalti_hold_close(run->hold);
}
