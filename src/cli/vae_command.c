/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/vae_command.h"

#include "base/clock.h"
#include "cli/held_session.h"
#include "cli/json_line.h"
#include "cli/signals.h"
#include "cli/vae_estimate.h"

static void on_progress(void *user, double share)
{
	struct smalti_vae_command *run = user;
	if (smalti_signals_caught())
		smalti_vae_cancel(run->vae);
	smalti_image_report_progress(&run->report, share, run->doing);
}

int smalti_vae_command_open(struct smalti_vae_command *run, struct smalti_error *error)
{
	const struct smalti_vae_settings *settings = run->settings;
	struct smalti_vae_options options = settings->vae;
	if (!options.directory)
		options.directory = settings->model;
	run->request = settings->request;
	run->request.user = run;
	run->request.on_progress = on_progress;
	run->session = smalti_held_session(&settings->session, error);
	run->vae = run->session ? smalti_vae_open(run->session, &options, error) : NULL;
	if (!run->vae)
		return -1;
	smalti_vae_info(run->vae, &run->info);
	return 0;
}

enum smalti_exit smalti_vae_command_close(struct smalti_vae_command *run, enum smalti_exit status)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	smalti_vae_close(run->vae);
	if (!run->session || smalti_session_close(run->session, &error) == 0)
		return run->report.broken ? SMALTI_EXIT_FAILED : status;
	return smalti_command_fail(run->command, &error);
}

void smalti_vae_command_begin(struct smalti_vae_command *run, int64_t total)
{
	const struct smalti_vae_settings *settings = run->settings;
	smalti_image_report_begin(&run->report, run->command, settings->json, settings->quiet, total);
}

static bool is_over(const struct smalti_vae_command *run)
{
	return run->report.made + run->report.failed == run->report.total;
}

bool smalti_vae_command_next(struct smalti_vae_command *run)
{
	run->image_began = smalti_now();
	return !is_over(run) && !smalti_signals_caught() && !run->report.broken;
}

void smalti_vae_command_add(struct smalti_vae_command *run, const char *file,
			    const struct smalti_error *error)
{
	const struct smalti_image_outcome outcome = {
	    .file = file,
	    .status = error ? SMALTI_IMAGE_FAILED : SMALTI_IMAGE_MADE,
	    .error = error,
	    .width = run->request.width,
	    .height = run->request.height,
	    .seconds = smalti_now() - run->image_began,
	    .images = 1,
	};
	if (!error || error->code != SMALTI_ECANCELLED) /* that it was stopped is said at the end */
		smalti_image_report_add(&run->report, &outcome);
}

int smalti_vae_command_plan(struct smalti_vae_command *run, smalti_vae_estimator *make_estimate,
			    const char *file, struct smalti_error *error)
{
	bool *broken = &run->report.broken;
	struct smalti_vae_estimate estimate;
	if (make_estimate(run->vae, &run->request, &estimate, error) < 0)
		return -1;
	if (run->settings->json)
		smalti_json_line(smalti_vae_estimate_json(&estimate, file), broken);
	else
		smalti_vae_estimate_print(&estimate, run->doing);
	*broken = *broken || smalti_finish_stdout() != SMALTI_EXIT_OK;
	smalti_vae_estimate_free(&estimate);
	return 0;
}

enum smalti_exit smalti_vae_command_end(struct smalti_vae_command *run, const char *result)
{
	if (run->info.unused && run->report.made > 0)
		smalti_image_report_warning(&run->report, run->info.unused);
	return smalti_image_report_end(&run->report, is_over(run) ? NULL : smalti_signals_caught(), "",
				       result);
}
