/* SPDX-License-Identifier: Apache-2.0 */
#include "train/run.h"
#include "base/clock.h"
#include "base/file.h"
#include "jobs/model.h"
#include "jobs/precision.h"
#include "kernels/isa.h"
#include "store/lock.h"
#include "train/identity.h"
#include "train/initial.h"
#include "train/null_caption.h"
#include "train/sample_images.h"

#include <math.h>

enum { CONFIG_BYTES = 1 << 20, LEASE_SECONDS = 300 };

/* One call of smalti_train(). */
struct run {
	struct smalti_session *session;
	const struct smalti_train_options *options;
	smalti_train_callback *on_progress;
	void *user;
	struct smalti_train_result *result;
	struct smalti_heartbeat *heartbeat;
	struct smalti_lock *lock;
	char holder[256]; /* of the lock, if it is another */
	bool locked;
	struct smalti_training_data *data, *held_out;
	struct smalti_transformer_config config;
	struct smalti_checkpoint *checkpoint; /* of the first weights; NULL: they are drawn */
	struct smalti_saved saved;            /* the last one, or what the next has in common with it */
	bool has_null_caption;                /* the last one has that of these options */
	struct smalti_trainer trainer;
	struct smalti_sample_images *sample_images; /* NULL: there are none */
	struct smalti_training_log *log;
	struct smalti_training_sample *samples;
	int64_t saved_step; /* that the last checkpoint is of; -1: there is none */
};

static void tell(struct run *run, const char *note)
{
	run->result->progress.note = note;
	if (run->on_progress && run->on_progress(run->user, &run->result->progress) != SMALTI_TRAIN_CONTINUE)
		run->result->stopped = true;
	run->result->progress.note = NULL;
}

static void on_damage(void *user, const char *message)
{
	struct run *run = user;
	char note[SMALTI_ERROR_LENGTH + 16];
	snprintf(note, sizeof(note), "left out: %s", message);
	smalti_training_log_note(run->log, "damaged", message);
	tell(run, note);
}

/* One process at a time trains in a directory. */
static bool refuse_to_wait(void *user, const char *holder, double seconds)
{
	(void)seconds;
	struct run *run = user;
	snprintf(run->holder, sizeof(run->holder), "%s", holder);
	return false;
}

static int lock_directory(struct run *run, struct smalti_error *error)
{
	const char *directory = run->options->output;
	const struct smalti_lock_wait wait = {refuse_to_wait, run, LEASE_SECONDS};
	struct smalti_error cause = SMALTI_NO_ERROR;
	if (smalti_make_directory(directory, error) < 0)
		return -1;
	run->heartbeat = smalti_heartbeat_start(LEASE_SECONDS, error);
	run->lock = run->heartbeat ? smalti_lock_open(directory, &wait, run->heartbeat, error) : NULL;
	if (!run->lock)
		return -1;
	run->locked = smalti_lock_take(run->lock, NULL, &cause) == 0;
	if (!run->locked && run->holder[0])
		return smalti_fail(error, SMALTI_EINVAL, "%s: %s trains in it: wait until that has ended",
				   directory, run->holder);
	return run->locked ? 0 : smalti_pass(error, &cause);
}

/* The directory of the transformer that is tuned. */
static char *transformer_directory(const struct smalti_train_options *o, struct smalti_error *error)
{
	const char *whole =
	    o->model.directory || o->model.transformer ? o->model.directory : smalti_embedded_model(error);
	if (!whole && !o->model.transformer)
		return NULL;
	return smalti_model_component(o->model.transformer, whole, "transformer", error);
}

/* The configuration, the first weights and their digest. */
static int open_weights(struct run *run, char digest[SMALTI_DIGEST_LENGTH + 1], struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	SCOPED(free) char *directory = o->initial ? NULL : transformer_directory(o, error);
	SCOPED(free)
	char *path = o->initial  ? smalti_format(error, "%s", o->initial)
		     : directory ? smalti_format(error, "%s/config.json", directory)
				 : NULL;
	if (!path || smalti_transformer_config_read(path, &run->config, error) < 0)
		return -1;
	if (!run->saved.config)
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

static int check_fit(const struct run *run, const struct smalti_training_data *data, const char *directory,
		     struct smalti_error *error)
{
	const struct smalti_shard_schema *schema = smalti_training_data_schema(data);
	if (run->config.patch_size != 2 || run->config.caption_channels == 0)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "the transformer has patches of %" PRId64
				   " and %s caption projection: training "
				   "expects patches of 2 and one",
				   run->config.patch_size, run->config.caption_channels ? "a" : "no");
	if (schema->latent_channels != run->config.in_channels)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: its latents have %" PRId64 " channels, the transformer takes %" PRId64
				   ": extract features with the VAE that belongs to it",
				   directory, schema->latent_channels, run->config.in_channels);
	if (schema->text_width != run->config.caption_channels)
		return smalti_fail(error, SMALTI_EINVAL,
				   "%s: its captions' features are %" PRId64
				   " wide, the transformer takes %" PRId64
				   ": extract features with the text encoder that belongs to it",
				   directory, schema->text_width, run->config.caption_channels);
	return 0;
}

/* A pipeline scales latents by its VAE's factor: the features have to be of the same. */
static int check_scaling(const struct run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	const double factor = smalti_training_data_schema(run->data)->scaling_factor;
	struct smalti_vae_config vae;
	if (o->initial || o->model.transformer)
		return 0;
	const char *whole = o->model.directory ? o->model.directory : smalti_embedded_model(error);
	SCOPED(free) char *path = whole ? smalti_format(error, "%s/vae/config.json", whole) : NULL;
	const int found = path ? smalti_find_file(path, error) : -1;
	if (found <= 0)
		return found;
	if (smalti_vae_config_read(path, &vae, error) < 0)
		return -1;
	if (fabs(vae.scaling_factor - factor) <= 1e-9 * fabs(factor))
		return 0;
	return smalti_fail(
	    error, SMALTI_EINVAL,
	    "%s: the features have the scaling factor %.9g, %s has %.9g: extract features with the VAE "
	    "that belongs to the transformer",
	    o->data.directories[0], factor, path, vae.scaling_factor);
}

static int open_held_out(struct run *run, struct smalti_error *error)
{
	struct smalti_train_options options = *run->options;
	if (!run->options->held_out)
		return 0;
	options.data.directories = &run->options->held_out;
	options.data.directory_count = 1;
	run->held_out = smalti_training_data_open(&options, on_damage, run, error);
	return run->held_out ? check_fit(run, run->held_out, run->options->held_out, error) : -1;
}

static void note_isa(struct run *run, const cJSON *identity)
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
	tell(run, note);
}

/* The features' text encoder, by its digest. */
static const char *text_model_of(const cJSON *identity)
{
	const cJSON *features = cJSON_GetObjectItemCaseSensitive(identity, "features");
	return cJSON_GetStringValue(
	    cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(features, "models"), "text"));
}

/* The rows of the null caption where a caption's number of them is taken; 0: its own. */
static int64_t padded_tokens(const struct run *run)
{
	const bool own = run->options->data.null_tokens == SMALTI_NULL_TOKENS_OWN;
	return own ? 0 : smalti_training_data_schema(run->data)->max_tokens;
}

/* Of the text encoder of these features, and padded as they ask for. */
static bool same_null_caption(const struct run *run, const cJSON *identity)
{
	const cJSON *before = cJSON_GetObjectItemCaseSensitive(run->saved.identity, "null_tokens");
	const cJSON *now = cJSON_GetObjectItemCaseSensitive(identity, "null_tokens");
	const char *text_model = text_model_of(run->saved.identity);
	const int64_t padded = padded_tokens(run);
	return cJSON_Compare(before, now, true) && text_model &&
	       strcmp(text_model, text_model_of(identity)) == 0 &&
	       (padded == 0 || padded == run->saved.null_caption.tokens);
}

/* What the checkpoint, if there is one, says of the run has to be what is asked for. */
static int identify(struct run *run, const char *weights, struct smalti_error *error)
{
	cJSON *identity = smalti_training_identity(run->options, run->data, weights, error);
	struct smalti_error difference = SMALTI_NO_ERROR;
	if (!identity)
		return -1;
	if (run->saved.identity) {
		if (!cJSON_HasObjectItem(run->saved.identity, "null_tokens")) /* before there was a choice */
			cJSON_AddStringToObject(run->saved.identity, "null_tokens",
						smalti_null_tokens[SMALTI_NULL_TOKENS_OWN]);
		run->has_null_caption = same_null_caption(run, identity);
		note_isa(run, identity);
		smalti_identity_compare(run->options->output, run->saved.identity, identity,
					&smalti_training_rules, &difference);
	}
	cJSON_Delete(run->saved.identity);
	run->saved.identity = identity;
	if (difference.code && !run->options->allow_change)
		return smalti_pass(error, &difference);
	if (difference.code)
		tell(run, "the run goes on with other options or data than it was begun with");
	return 0;
}

static int open_parts(struct run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	char weights[SMALTI_DIGEST_LENGTH + 1];
	if (smalti_precision_choose(o->model.precision, run->session, error) < 0 ||
	    lock_directory(run, error) < 0)
		return -1;
	const int found = smalti_saved_read(o->output, &run->saved, error);
	run->saved_step = found > 0 ? run->saved.step : -1;
	run->data = found < 0 ? NULL : smalti_training_data_open(o, on_damage, run, error);
	if (!run->data || open_weights(run, weights, error) < 0 ||
	    check_fit(run, run->data, o->data.directories[0], error) < 0 || check_scaling(run, error) < 0 ||
	    open_held_out(run, error) < 0)
		return -1;
	return identify(run, weights, error);
}

/* Whether any step that the data may bring fits into memory is known before the first. */
static int check_memory(struct run *run, struct smalti_error *error)
{
	const struct smalti_shard_extent extent = smalti_training_data_extent(run->data);
	struct smalti_step_shape shape = {0};
	struct smalti_step_plan plan;
	char note[160];
	if (extent.latent_height < run->config.patch_size || extent.latent_width < run->config.patch_size)
		return 0; /* nothing to train on, which the first step says */
	smalti_step_shape_widen(&shape, extent.latent_height, extent.latent_width, extent.tokens);
	if (smalti_step_plan_choose(&run->trainer, &shape, &plan, error) < 0)
		return -1;
	snprintf(note, sizeof(note),
		 "steps take %" PRId64 " MB of %" PRId64 " at most: %" PRId64 " of %" PRId64
		 " blocks computed again, %" PRId64 " samples at a time",
		 (plan.bytes >> 20) + 1, run->session->memory >> 20, plan.recomputed, run->config.layers,
		 plan.together);
	tell(run, note);
	return 0;
}

static int set_data(struct run *run, struct smalti_error *error)
{
	smalti_trainer_set_data(&run->trainer, smalti_training_data_schema(run->data),
				&run->saved.null_caption);
	return run->options->recomputation == SMALTI_RECOMPUTE_AUTO ? check_memory(run, error) : 0;
}

static int encode_null_caption(struct run *run, struct smalti_error *error)
{
	return smalti_null_caption_encode(run->session, &run->options->model,
					  text_model_of(run->saved.identity), padded_tokens(run),
					  &run->saved.null_caption, error);
}

static int begin(struct run *run, struct smalti_error *error)
{
	struct smalti_trainer *trainer = &run->trainer;
	if (encode_null_caption(run, error) < 0 || set_data(run, error) < 0)
		return -1;
	if (!run->checkpoint)
		smalti_initial_values(trainer->parameters, trainer->task_group, run->options->seed);
	else if (smalti_parameters_read(trainer->parameters, trainer->task_group, &run->config,
					run->checkpoint, error) < 0)
		return -1;
	return smalti_trainer_begin(trainer, error);
}

static int go_on(struct run *run, struct smalti_error *error)
{
	run->saved.null_caption.width = run->config.caption_channels;
	if ((!run->has_null_caption && encode_null_caption(run, error) < 0) || set_data(run, error) < 0)
		return -1;
	return smalti_saved_load(&run->saved, &run->trainer, error) < 0 ||
		       smalti_training_data_seek(run->data, &run->saved.position, error) < 0
		   ? -1
		   : 0;
}

static int open_run(struct run *run, struct smalti_error *error)
{
	if (open_parts(run, error) < 0)
		return -1;
	run->samples = smalti_calloc(run->options->batch, sizeof(*run->samples), error);
	if (!run->samples ||
	    smalti_trainer_open(&run->trainer, run->session, run->options, &run->config, error) < 0)
		return -1;
	if ((run->saved.directory ? go_on(run, error) : begin(run, error)) < 0)
		return -1;
	run->log = smalti_training_log_open(run->options->output, run->session, run->saved.identity,
					    run->trainer.state.steps, run->options->steps);
	run->result->progress.step = run->trainer.state.steps;
	run->result->progress.steps = run->options->steps;
	return 0;
}

static int save(struct run *run, struct smalti_error *error)
{
	struct smalti_data_position position;
	char note[64];
	if (run->saved_step == run->trainer.state.steps)
		return 0;
	if (smalti_training_data_position(run->data, &position, error) < 0)
		return -1;
	const int status = smalti_saved_write(run->options->output, &run->saved, &run->trainer, &position,
					      run->options->keep, error);
	free(position.waiting);
	if (status < 0)
		return -1;
	run->saved_step = run->trainer.state.steps;
	snprintf(note, sizeof(note), "step-%" PRId64, run->saved_step);
	smalti_training_log_note(run->log, "checkpoint", note);
	return 0;
}

static int evaluate(struct run *run, struct smalti_error *error)
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
		tell(run, note);
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

/* From the checkpoint of this step. */
static int make_sample_images(struct run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	const int64_t step = run->trainer.state.steps;
	char note[224];
	if (save(run, error) < 0 || smalti_sample_images_make(run->sample_images, step, error) < 0)
		return -1;
	snprintf(note, sizeof(note),
		 "step %" PRId64 ": %" PRId64 " sample images in %.80s/samples/step-%" PRId64, step,
		 o->samples.count, o->output, step);
	tell(run, note);
	return 0;
}

/* Those that a run which was stopped behind its checkpoint has not made of it are made now. */
static int begin_sample_images(struct run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	const int64_t step = run->trainer.state.steps;
	const bool due = is_due(step, o->samples.every) || step == 0 || step == o->steps;
	const bool misses = due && !smalti_sample_images_made(o, step);
	if (o->samples.count == 0 || (step >= o->steps && !misses))
		return 0;
	if (save(run, error) < 0)
		return -1;
	run->sample_images = smalti_sample_images_open(&run->trainer, step, error);
	if (!run->sample_images)
		return -1;
	return misses ? make_sample_images(run, error) : 0;
}

static int make_step(struct run *run, struct smalti_error *error)
{
	struct smalti_train_result *result = run->result;
	struct smalti_training_state *state = &run->trainer.state;
	struct smalti_step_result step;
	const double began = smalti_now();
	if (smalti_training_data_next(run->data, run->samples, error) < 0)
		return -1;
	const double data_seconds = smalti_now() - began;
	const int64_t epoch = run->samples[run->options->batch - 1].epoch;
	if (smalti_trainer_step(&run->trainer, run->samples, &step, error) < 0)
		return -1;
	smalti_training_log_step(run->log, state, epoch, &step, data_seconds);
	result->made++;
	result->skipped += step.skipped;
	result->progress = (struct smalti_train_progress){.step = state->steps,
							  .steps = run->options->steps,
							  .epoch = epoch,
							  .loss = step.loss,
							  .norm = step.norm,
							  .rate = step.rate,
							  .skipped = step.skipped};
	tell(run, NULL);
	return 0;
}

static int train(struct run *run, struct smalti_error *error)
{
	const struct smalti_train_options *o = run->options;
	const int64_t first = run->trainer.state.steps;
	if (first == 0 && run->held_out && evaluate(run, error) < 0)
		return -1;
	if (begin_sample_images(run, error) < 0)
		return -1;
	while (run->trainer.state.steps < o->steps && !run->result->stopped) {
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

static void close_run(struct run *run)
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
	if (run->locked)
		smalti_lock_give(run->lock);
	smalti_lock_close(run->lock);
	smalti_heartbeat_stop(run->heartbeat);
}

int smalti_train(struct smalti_session *session, const struct smalti_train_options *options,
		 smalti_train_callback *on_progress, void *user, struct smalti_train_result *result,
		 struct smalti_error *error)
{
	SMALTI_REPORT(error);
	struct run run = {.session = session,
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
	const int status = open_run(&run, error) < 0 || train(&run, error) < 0 ? -1 : 0;
	if (status < 0)
		smalti_training_log_note(run.log, "failed", error->message);
	close_run(&run);
	return status;
}
