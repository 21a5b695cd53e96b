/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file.h"
#include "cli/common_rows.h"
#include "cli/generate_batch.h"
#include "cli/generate_options.h"
#include "cli/held_session.h"
#include "cli/signals.h"

#include <stdio.h>

/* Everything that has to be closed. */
struct generate {
	const struct smalti_generate_options *options;
	struct smalti_start start;
	struct smalti_source *source;
	struct smalti_output output;
	struct smalti_session *session;
	struct smalti_model *model;
};

/* What holds for every request that does not say otherwise. */
static struct smalti_request base_request(const struct generate *g)
{
	struct smalti_request request;
	smalti_request_defaults(&request);
	request.negative_prompt = g->options->negative;
	request.cleaning = (enum smalti_cleaning)g->options->cleaning;
	request.width = g->options->size.width;
	request.height = g->options->size.height;
	request.resolution_binning = g->options->resolution_binning;
	request.seed = g->options->seed;
	request.images = g->options->images;
	request.steps = g->options->steps;
	request.guidance = g->options->guidance;
	request.scheduler = g->options->scheduler;
	request.noise = (enum smalti_noise)g->options->noise;
	request.tile_tokens = g->options->tile_tokens;
	request.tile_rows = g->options->tile_rows;
	if (g->start.values && !g->options->has_images)
		request.images = g->start.shape[0];
	return request;
}

static const char *const suffixes[] = {".png", NULL};

/* Prompts, latents and outputs: before StarPU is started for nothing. */
static int open_files(struct generate *g, struct smalti_error *error)
{
	if (g->options->latents && smalti_start_read(&g->start, g->options->latents, error) < 0)
		return -1;
	const struct smalti_request base = base_request(g);
	g->source = smalti_source_open(g->options, &base, error);
	if (!g->source)
		return -1;
	if (smalti_output_open(&g->output, g->options->output, suffixes[0], smalti_source_images(g->source),
			       error) < 0)
		return -1;
	return g->output.file ? smalti_format_of(g->output.file, false, 0, suffixes, error) : 0;
}

static int open_session(struct generate *g, struct smalti_error *error)
{
	g->session = smalti_held_session(&g->options->session, error);
	return g->session ? 0 : -1;
}

static int open_model(struct generate *g, struct smalti_error *error)
{
	struct smalti_model_options options;
	smalti_model_defaults(&options);
	options.directory = g->options->model;
	options.tokenizer = g->options->tokenizer;
	options.text_encoder = g->options->text_encoder;
	options.transformer = g->options->transformer;
	options.vae = g->options->vae;
	options.scheduler = g->options->scheduler_config;
	options.variant = g->options->variant;
	options.precision = (enum smalti_precision)g->options->precision;
	g->model = smalti_model_open(g->session, &options, error);
	return g->model ? 0 : -1;
}

static int close_all(struct generate *g, struct smalti_error *error)
{
	smalti_model_close(g->model);
	const int status = smalti_session_close(g->session, error);
	smalti_output_close(&g->output);
	smalti_source_close(g->source);
	smalti_start_free(&g->start);
	return status;
}

static enum smalti_exit fail(const struct smalti_error *error)
{
	fprintf(stderr, "smalti generate: %s\n", error->message);
	return SMALTI_EXIT_FAILED;
}

static enum smalti_exit make_images(struct generate *g, struct smalti_error *error)
{
	const struct smalti_generate_options *options = g->options;
	struct smalti_model_info info;
	smalti_model_info(g->model, &info);
	struct smalti_report report;
	struct smalti_generation generation = {
	    .source = g->source,
	    .output = &g->output,
	    .report = &report,
	    .model = g->model,
	    .origin = {.model = info.digest,
		       .scheduler = info.scheduler,
		       .precision = smalti_precisions[options->precision],
		       .latents = g->start.values ? g->start.digest : NULL},
	    .start = g->start.values ? &g->start : NULL,
	    .resume = options->resume,
	    .save_latents = options->save_latents,
	};
	if (options->resume)
		smalti_writer_clean(g->output.directory, false);
	smalti_report_begin(&report, options->json, options->quiet, smalti_source_images(g->source));
	if (info.unused) {
		struct smalti_error unused = SMALTI_NO_ERROR;
		smalti_fail(&unused, SMALTI_EUNSUPPORTED, "%s", info.unused);
		smalti_report_warning(&report, &unused);
	}
	if (smalti_generation_run(&generation, error) < 0)
		return fail(error);
	return smalti_report_end(&report, generation.stopped ? smalti_signals_caught() : NULL);
}

enum smalti_exit smalti_generate_run(void *options, int count, char **operands)
{
	struct generate g = {.options = options};
	struct smalti_error error = SMALTI_NO_ERROR;
	if (count > 0)
		return smalti_usage_error(&smalti_generate_command,
					  "unexpected operand '%.99s' (a prompt is given by --prompt)",
					  operands[0]);
	smalti_signals_catch();
	enum smalti_exit status;
	if (smalti_generate_check(g.options, &error) < 0 || open_files(&g, &error) < 0 ||
	    open_session(&g, &error) < 0)
		status = smalti_command_fail(&smalti_generate_command, &error);
	else if (open_model(&g, &error) < 0)
		status = fail(&error);
	else
		status = make_images(&g, &error);
	struct smalti_error close_error = SMALTI_NO_ERROR;
	if (close_all(&g, &close_error) < 0)
		status = fail(&close_error);
	return status;
}
