/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/generate.h"
#include "base/file.h"
#include "cli/common_rows.h"
#include "cli/signals.h"

static const char *const suffixes[] = {".png", NULL};

/* Prompts, latents and outputs: before StarPU is started for nothing. */
static int open_files(struct smalti_generation *g, struct smalti_generate_options *o,
		      struct smalti_error *error)
{
	if (o->latents && smalti_start_read(&g->start, o->latents, error) < 0)
		return -1;
	if (o->latents && !o->has_images)
		o->request.images = g->start.shape[0];
	if (smalti_source_open(&g->source, o, error) < 0 ||
	    smalti_output_open(&g->output, o->output, suffixes[0], g->source.images, error) < 0)
		return -1;
	return g->output.file ? smalti_format_of(g->output.file, false, 0, suffixes, error) : 0;
}

static int close_all(struct smalti_generation *g, struct smalti_error *error)
{
	smalti_model_close(g->model);
	const int status = smalti_session_close(g->session, error);
	smalti_output_close(&g->output);
	smalti_prompts_close(g->source.file);
	smalti_start_free(&g->start);
	return status;
}

static enum smalti_exit fail(const struct smalti_error *error)
{
	fprintf(stderr, "smalti generate: %s\n", error->message);
	return SMALTI_EXIT_FAILED;
}

static enum smalti_exit make_images(struct smalti_generation *g)
{
	const struct smalti_generate_options *options = g->options;
	struct smalti_error error = SMALTI_NO_ERROR;
	g->model = smalti_model_open(g->session, &options->model, &error);
	if (!g->model)
		return fail(&error);
	smalti_model_info(g->model, &g->info);
	g->origin = (struct smalti_image_origin){.model = g->info.digest,
						 .scheduler = g->info.scheduler,
						 .precision = smalti_precisions[options->model.precision],
						 .latents = g->start.values ? g->start.digest : NULL};
	if (options->resume)
		smalti_writer_clean(g->output.directory, false);
	smalti_image_report_begin(&g->report, &smalti_generate_command, options->json, options->quiet,
				  g->source.images);
	if (g->info.unused)
		smalti_image_report_warning(&g->report, g->info.unused);
	if (smalti_generation_run(g, &error) < 0)
		return fail(&error);
	return smalti_image_report_end(&g->report, g->stopped ? smalti_signals_caught() : NULL,
				       "; run again with --resume", NULL);
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
	if (smalti_generate_check(options, &error) == 0 && open_files(&g, options, &error) == 0)
		g.session = smalti_held_session(&g.options->session, &error);
	enum smalti_exit status =
	    g.session ? make_images(&g) : smalti_command_fail(&smalti_generate_command, &error);
	if (close_all(&g, &close_error) < 0)
		status = fail(&close_error);
	return status;
}
