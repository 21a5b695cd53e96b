/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/file.h"
#include "cli/common_rows.h"
#include "cli/generate_share.h"
#include "cli/lora.h"
#include "cli/predict.h"
#include "cli/ranks.h"
#include "cli/signals.h"
#include "jobs/follow.h"
#include "jobs/plan_strategy.h"
#include "ranks/ranks.h"

static const char *const suffixes[] = {".png", NULL};

/* Opens prompts, latents and output before StarPU starts. */
static int open_files(struct smalti_generation *g, struct smalti_generate_options *o,
		      struct smalti_error *error)
{
	if (o->latents && smalti_start_read(&g->start, o->latents, error) < 0)
		return -1;
	if (o->latents && !o->has_images)
		o->request.images = g->start.shape[0];
	struct smalti_request first = o->request; /* what is wrong with the files is said at once */
	if (smalti_generation_read_pictures(g, o->image, o->mask, &first, error) < 0 ||
	    smalti_source_open(&g->source, o, error) < 0)
		return -1;
	if (o->plan)
		return 0;
	if (smalti_output_open(&g->output, o->output, suffixes[0], g->source.images, error) < 0)
		return -1;
	return g->output.file ? smalti_format_of(g->output.file, false, 0, suffixes, error) : 0;
}

static int close_all(struct smalti_generation *g, struct smalti_error *error)
{
	smalti_generate_share_close(g->share);
	smalti_model_close(g->model);
	const int status = smalti_session_close(g->session, error);
	smalti_output_close(&g->output);
	smalti_prompts_close(g->source.file);
	smalti_start_free(&g->start);
	smalti_named_picture_free(&g->image);
	smalti_named_picture_free(&g->mask);
	return status;
}

/* Rank 0 prints a failure, whichever rank it is of. */
static enum smalti_exit fail(const struct smalti_error *error)
{
	if (smalti_ranks_own() == 0)
		fprintf(stderr, "smalti generate: %s\n", error->message);
	return SMALTI_EXIT_FAILED;
}

static enum smalti_exit show_plans(struct smalti_generation *g)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	if (smalti_generation_plan(g, &error) < 0)
		return fail(&error);
	return smalti_finish_stdout();
}

/* Returns what --predict gives of the images that were made, or NULL. */
static cJSON *predict(struct smalti_generation *g)
{
	const struct smalti_generate_options *o = g->options;
	struct smalti_simulate_options work = smalti_predict_begin(o->predict, g->session, &o->session);
	const char *usual = work.request.prompt;
	work.model = o->model.directory;
	work.precision = (int)o->model.precision;
	work.request = o->request;
	work.request.prompt = *o->prompt.items[0] ? o->prompt.items[0] : usual;
	work.request.images = g->report.made;
	return smalti_predict(&work, smalti_now() - g->report.began, NULL, !o->quiet && !o->json,
			      &smalti_generate_command, &g->report.progress);
}

static enum smalti_exit make_images(struct smalti_generation *g)
{
	const struct smalti_generate_options *options = g->options;
	struct smalti_error error = SMALTI_NO_ERROR;
	g->model = smalti_model_open(g->session, &options->model, &error);
	if (!g->model)
		return fail(&error);
	smalti_model_info(g->model, &g->info);
	if (options->plan)
		return show_plans(g);
	g->origin = (struct smalti_image_origin){.model = g->info.digest,
						 .scheduler = g->info.scheduler,
						 .precision = smalti_precisions[options->model.precision],
						 .latents = g->start.values ? g->start.digest : NULL};
	if (options->resume)
		smalti_writer_clean(g->output.directory, false);
	smalti_image_report_begin(&g->report, &smalti_generate_command, g->session, options->json,
				  options->quiet, g->source.images);
	if (options->share && smalti_ranks_agree(smalti_generate_share_open(g, &error), NULL, &error) < 0) {
		smalti_progress_end(&g->report.progress);
		return smalti_command_ranks_fail(&smalti_generate_command, &error);
	}
	if (g->info.unused)
		smalti_image_report_warning(&g->report, g->info.unused);
	const int status = smalti_generation_run(g, &error);
	if (status < 0)
		smalti_image_report_error(&g->report, error.message);
	if (options->predict && status == 0 && !g->stopped && g->report.made > 0)
		g->report.predicted = predict(g);
	const char *signal = smalti_signals_caught() ? smalti_signals_caught() : g->cause.message;
	const enum smalti_exit end = smalti_image_report_end(
	    &g->report, g->stopped ? signal : NULL,
	    options->share ? "; the same command goes on" : "; run again with --resume", NULL);
	return status < 0 ? SMALTI_EXIT_FAILED : end;
}

static void refuse(void *batch)
{
	smalti_batch_refuse(batch, smalti_signals_caught());
}

static void cancel(void *batch)
{
	smalti_batch_cancel(batch);
}

/* Runs another rank, which computes what rank 0 says, which has the files. */
static enum smalti_exit follow(struct smalti_generation *g)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	g->model = smalti_model_open(g->session, &g->options->model, &error);
	if (g->model && g->options->plan)
		return SMALTI_EXIT_OK;
	if (g->model && g->options->share && smalti_ranks_agree(0, NULL, &error) < 0)
		return smalti_command_ranks_fail(&smalti_generate_command, &error);
	struct smalti_batch *batch = g->model ? smalti_batch_open(g->model, &error) : NULL;
	if (!batch)
		return fail(&error);
	smalti_signals_first(refuse, batch);
	smalti_signals_second(cancel, batch);
	smalti_batch_follow(batch);
	smalti_batch_wait(batch);
	smalti_signals_first(NULL, NULL);
	smalti_signals_second(NULL, NULL);
	smalti_batch_close(batch);
	return SMALTI_EXIT_OK;
}

/* Opens all, on all ranks or on none. */
static int open_all(struct smalti_generation *g, struct smalti_generate_options *options,
		    struct smalti_error *error)
{
	int status = smalti_command_ranks_start(&smalti_generate_command, error);
	if (smalti_ranks_count() > 1 && !options->request.strategy && !options->request.shares)
		options->request.strategy = "patch";
	if (status == 0)
		status = smalti_lora_parse(&options->lora, &options->model, error);
	if (status == 0)
		status = smalti_generate_check(options, error);
	if (status == 0 && smalti_ranks_own() == 0)
		status = open_files(g, options, error);
	if (smalti_ranks_agree(status, NULL, error) < 0)
		return -1;
	g->session = smalti_held_session(&g->options->session, error);
	return g->session ? smalti_plan_strategy_prepare(g->session, &options->request, error) : -1;
}

enum smalti_exit smalti_generate_run(void *options, int count, char **operands)
{
	struct smalti_generation g = {.options = options};
	struct smalti_error error = SMALTI_NO_ERROR, close_error = SMALTI_NO_ERROR;
	if (count > 0)
		return smalti_usage_error(&smalti_generate_command,
					  "unexpected operand '%.99s' (a prompt is given by --prompt)",
					  operands[0]);
	smalti_signals_catch();
	enum smalti_exit status;
	const int opened = open_all(&g, options, &error);
	if (opened < 0)
		status = smalti_command_ranks_fail(&smalti_generate_command, &error);
	else
		status = smalti_ranks_own() > 0 ? follow(&g) : make_images(&g);
	smalti_lora_free(&((struct smalti_generate_options *)options)->model);
	if (close_all(&g, &close_error) < 0)
		status = fail(&close_error);
	smalti_ranks_stop();
	return status;
}
