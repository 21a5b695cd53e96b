/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/train.h"
#include "base/clock.h"
#include "cli/device_lines.h"
#include "cli/numbers.h"
#include "cli/predict.h"
#include "cli/progress.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "ranks/ranks.h"
#include "report/training.h"
#include "train/identity.h"
#include "train/run.h"

#include <math.h>

struct train {
	const struct smalti_train_settings *settings;
	struct smalti_session *session;
	struct smalti_train_options options;
	struct smalti_progress progress;
	double began;
	bool begun, quiet; /* quiet: also of other ranks than rank 0 */
};

/* Reads `min` to `max` numbers with commas between them. */
static int parse_list(const char *option, const char *text, int min, int max, double *values,
		      struct smalti_error *error)
{
	int count = 1;
	for (const char *at = text; (at = strchr(at, ',')); at++)
		count++;
	if (count >= min && count <= max && smalti_parse_numbers(text, ',', count, values, NULL) == 0)
		return 0;
	return smalti_fail(error, SMALTI_EINVAL,
			   "%s: expected %d to %d numbers with commas between them, found '%s'", option, min,
			   max, text);
}

/* Sets the optimizer's own defaults where nothing was given. */
static int set_optimizer(struct train *t, struct smalti_error *error)
{
	const struct smalti_train_settings *s = t->settings;
	struct smalti_optimizer_options *o = &t->options.optimizer;
	const bool came = o->kind == SMALTI_OPTIMIZER_CAME;
	if (came && !s->has_epsilons)
		o->epsilons[0] = 1e-30;
	if (came && !s->has_weight_decay)
		o->weight_decay = 0;
	if (s->has_betas && parse_list("--betas", s->betas, 2, came ? 3 : 2, o->betas, error) < 0)
		return -1;
	return s->has_epsilons ? parse_list("--eps", s->epsilons, 1, came ? 2 : 1, o->epsilons, error) : 0;
}

/* Splits "a:2,b" into two keys: the commas and colons become NULs. The library refuses too many keys. */
static int set_captions(struct train *t, struct smalti_error *error)
{
	struct smalti_training_data_options *o = &t->options.data;
	const struct smalti_string_list *list = &t->settings->caption_keys;
	for (int i = 0; i < list->count; i++)
		for (char *rest = (char *)list->items[i], *key; (key = strsep(&rest, ","));) {
			char *weight = strrchr(key, ':');
			double value = 1;
			if (weight &&
			    smalti_parse_double(weight + 1, 0, SMALTI_TRAIN_LARGEST, &value, error) < 0)
				return -1;
			if (weight)
				*weight = '\0';
			if (o->caption_count < SMALTI_FEATURES_CAPTIONS_MAX) {
				o->captions[o->caption_count] = key;
				o->weights[o->caption_count] = value;
			}
			o->caption_count++;
		}
	return 0;
}

static int set_options(struct train *t, int count, char **operands, struct smalti_error *error)
{
	struct smalti_train_options *o = &t->options;
	*o = t->settings->train;
	if (count == 0)
		return smalti_fail(error, SMALTI_EINVAL,
				   "no features: name the directories that smalti extract has written");
	if (!o->output || !*o->output)
		return smalti_fail(error, SMALTI_EINVAL, "no place for the run: give -o RUN");
	if (o->initial && o->model.transformer)
		return smalti_fail(error, SMALTI_EINVAL, "--init and --transformer exclude each other");
	o->data.directories = (const char *const *)operands;
	o->data.directory_count = count;
	o->data.mean_latents = t->settings->latents == 1;
	o->samples.prompts = t->settings->sample_prompts.items;
	o->samples.count = t->settings->sample_prompts.count;
	if (set_captions(t, error) < 0 || set_optimizer(t, error) < 0)
		return -1;
	return smalti_train_check(o, error);
}

static enum smalti_train_action on_progress(void *user, const struct smalti_train_progress *progress)
{
	struct train *t = user;
	char detail[SMALTI_PROGRESS_DETAIL];
	if (progress->note && !t->quiet)
		smalti_progress_print(&t->progress, "smalti train: %s", progress->note);
	if (!progress->note) {
		if (!t->begun) /* what was made before is not of this speed */
			smalti_progress_begin(&t->progress, stderr, "steps", t->quiet);
		t->begun = true;
		snprintf(detail, sizeof(detail), "loss %.4g, norm %.3g, lr %.3g", progress->loss,
			 progress->norm, progress->rate);
		smalti_progress_within(&t->progress, 0, detail);
		smalti_progress_update(&t->progress, progress->step, progress->steps);
	}
	return smalti_signals_caught() ? SMALTI_TRAIN_STOP : SMALTI_TRAIN_CONTINUE;
}

/* Refuses what simulations of training do not know. */
static int check_prediction(const struct train *t, struct smalti_error *error)
{
	const struct smalti_train_options *o = &t->options;
	const struct smalti_unpredicted unknown[] = {{"--init", o->initial != NULL},
						     {"--transformer", o->model.transformer != NULL}};
	return smalti_predict_check(t->settings->predict, unknown, COUNT_OF(unknown), error);
}

/* Sets what a step of this run computes: samples of a square with as many pixels as they have on average. */
static void set_work(struct smalti_simulate_options *work, const struct smalti_train_options *o,
		     const struct smalti_training_history *history)
{
	enum { FACTOR = 8, SIDE = 2, STEPS = 3 }; /* pixels of a latent's; latents of a token's side */
	const double pixels = smalti_training_history_mean(history, SMALTI_TRAINING_LATENT_PIXELS);
	const int64_t side = smalti_max(1, llround(sqrt(pixels) / SIDE)) * SIDE * FACTOR;
	work->job = SMALTI_SIMULATED_TRAINING;
	work->model = o->model.directory;
	work->precision = (int)o->model.precision;
	work->caption_tokens = llround(smalti_training_history_mean(history, SMALTI_TRAINING_CAPTION_TOKENS));
	work->training = (struct smalti_simulated_training){.batch = o->batch,
							    .lanes = o->lanes,
							    .micro = o->micro,
							    .recomputation = (int)o->recomputation,
							    .optimizer = (int)o->optimizer.kind,
							    .lora_rank = o->lora.rank,
							    .lora_targets = o->lora.targets};
	work->request.width = work->request.height = side;
	work->request.steps = STEPS;
	work->request.strategy = o->strategy;
	work->request.shares = o->shares;
	work->request.tile_tokens = o->tile_tokens;
}

static cJSON *predict_step(struct train *t, const struct smalti_training_history *history, const char *log)
{
	struct smalti_simulate_options work =
	    smalti_predict_begin(t->settings->predict, t->session, &t->settings->session);
	set_work(&work, &t->options, history);
	return smalti_predict(&work, smalti_training_history_mean(history, SMALTI_TRAINING_SECONDS), log,
			      !t->settings->quiet && !t->settings->json, &smalti_train_command, &t->progress);
}

/* Returns what --predict gives, or NULL. */
static cJSON *predict(struct train *t)
{
	struct smalti_training_history history = {.count = 0};
	struct smalti_error error = SMALTI_NO_ERROR;
	SCOPED(free) char *log = smalti_format(&error, "%s/log.jsonl", t->options.output);
	const bool known = log && smalti_training_history_read(t->options.output, &history, &error) == 0 &&
			   !isnan(smalti_training_history_mean(&history, SMALTI_TRAINING_SECONDS));
	cJSON *prediction = known ? predict_step(t, &history, log) : NULL;
	if (!known)
		smalti_progress_print(&t->progress, "smalti train: nothing is predicted: %s",
				      error.code ? error.message : "the log has no step behind the first");
	smalti_training_history_free(&history);
	return prediction;
}

static bool print_json(const struct train *t, const struct smalti_train_result *result, cJSON *prediction)
{
	const struct smalti_train_progress *p = &result->progress;
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "folder", t->options.output);
	cJSON_AddNumberToObject(object, "step", (double)p->step);
	cJSON_AddNumberToObject(object, "steps", (double)p->steps);
	cJSON_AddNumberToObject(object, "made", (double)result->made);
	cJSON_AddNumberToObject(object, "skipped", (double)result->skipped);
	cJSON_AddNumberToObject(object, "damaged", (double)result->damaged);
	smalti_device_json(object, t->session);
	if (result->log.code)
		smalti_json_add_text(object, "log_lost", result->log.message);
	if (result->made > 0)
		cJSON_AddNumberToObject(object, "loss", p->loss);
	if (!isnan(result->mse)) {
		cJSON_AddNumberToObject(object, "mse", result->mse);
		cJSON_AddNumberToObject(object, "vb", result->vb);
	}
	smalti_json_add_seconds(object, smalti_now() - t->began);
	if (result->stopped && smalti_signals_caught())
		cJSON_AddStringToObject(object, "stopped", smalti_signals_caught());
	if (prediction)
		cJSON_AddItemReferenceToObject(object, "predicted", prediction);
	return smalti_json_print(object);
}

static enum smalti_exit report(struct train *t, const struct smalti_train_result *result)
{
	const struct smalti_train_progress *p = &result->progress;
	char seconds[SMALTI_NUMBER];
	enum smalti_exit status = result->stopped ? SMALTI_EXIT_FAILED : SMALTI_EXIT_OK;
	if (result->log.code && t->settings->quiet) /* it is an error, and was not told before */
		smalti_progress_print(&t->progress, "smalti train: %s", result->log.message);
	if (result->stopped)
		smalti_progress_print(&t->progress,
				      "smalti train: stopped by %s: %" PRId64 " of %" PRId64
				      " steps made; the same command goes on from there",
				      smalti_signals_caught(), p->step, p->steps);
	else if (!t->settings->quiet && !t->settings->json)
		smalti_progress_print(&t->progress,
				      "%" PRId64 " steps, %" PRId64 " now in %s: %s/step-%" PRId64, p->step,
				      result->made, smalti_number_seconds(smalti_now() - t->began, seconds),
				      t->options.output, p->step);
	else
		smalti_progress_end(&t->progress);
	if (!t->settings->quiet && !t->settings->json)
		smalti_device_lines(&t->progress, t->session);
	const bool predicts = t->settings->predict && !result->stopped && result->made > 0;
	SCOPED(cJSON_Delete) cJSON *prediction = predicts ? predict(t) : NULL;
	if (t->settings->json && !print_json(t, result, prediction))
		status = SMALTI_EXIT_FAILED;
	return status;
}

static enum smalti_exit train(struct train *t)
{
	struct smalti_train_result result;
	struct smalti_error error = SMALTI_NO_ERROR;
	t->began = smalti_now();
	smalti_progress_begin(&t->progress, stderr, "steps", t->quiet);
	const int status = smalti_train(t->session, &t->options, on_progress, t, &result, &error);
	if (status == 0 && smalti_ranks_own() > 0)
		return result.stopped ? SMALTI_EXIT_FAILED : SMALTI_EXIT_OK;
	if (status == 0)
		return report(t, &result);
	smalti_progress_end(&t->progress);
	return smalti_command_ranks_fail(&smalti_train_command, &error);
}

/* Opens the session, on all ranks (ranks/ranks.h) or on none. */
static int open_session(struct train *t, int count, char **operands, struct smalti_error *error)
{
	int status = smalti_command_ranks_start(&smalti_train_command, error);
	if (status == 0)
		status = set_options(t, count, operands, error) < 0 ? -1 : check_prediction(t, error);
	if (smalti_ranks_agree(status, NULL, error) < 0)
		return -1;
	t->quiet = t->settings->quiet || smalti_ranks_own() > 0;
	if (smalti_ranks_count() > 1 && !t->options.strategy)
		t->options.strategy = "data";
	t->session = smalti_held_session(&t->settings->session, error);
	return t->session ? 0 : -1;
}

enum smalti_exit smalti_train_run(void *options, int count, char **operands)
{
	struct train t = {.settings = options};
	struct smalti_error error = SMALTI_NO_ERROR;
	enum smalti_exit exit;
	smalti_signals_catch();
	exit = open_session(&t, count, operands, &error) == 0
		   ? train(&t)
		   : smalti_command_ranks_fail(&smalti_train_command, &error);
	if (t.session && smalti_session_close(t.session, &error) < 0)
		exit = smalti_command_ranks_fail(&smalti_train_command, &error);
	smalti_ranks_stop();
	return exit;
}
