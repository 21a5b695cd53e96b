/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/vae_command.h"

#include "base/clock.h"
#include "base/error.h"
#include "cli/held_session.h"
#include "cli/json_line.h"
#include "cli/numbers.h"
#include "cli/output.h"
#include "cli/signals.h"
#include "cli/vae_estimate.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int smalti_vae_command_open(struct smalti_vae_command *run, struct smalti_error *error)
{
	const struct smalti_vae_settings *settings = run->settings;
	struct smalti_vae_options options;
	smalti_vae_defaults(&options);
	options.directory = settings->vae ? settings->vae : settings->model;
	options.variant = settings->variant;
	options.precision = (enum smalti_precision)settings->precision;
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
		return run->broken ? SMALTI_EXIT_FAILED : status;
	return smalti_command_fail(run->command, &error);
}

void smalti_vae_command_begin(struct smalti_vae_command *run, int64_t total)
{
	run->total = total;
	run->began = smalti_now();
	smalti_progress_begin(&run->progress, stderr, "images", run->settings->quiet);
}

bool smalti_vae_command_next(struct smalti_vae_command *run)
{
	run->image_began = smalti_now();
	return run->made + run->failed < run->total && !smalti_signals_caught() && !run->broken;
}

static void update(struct smalti_vae_command *run, double share)
{
	smalti_progress_within(&run->progress, share, run->doing);
	smalti_progress_update(&run->progress, run->made + run->failed, run->total);
}

void smalti_vae_command_watch(void *user, double share)
{
	struct smalti_vae_command *run = user;
	if (smalti_signals_caught())
		smalti_vae_cancel(run->vae);
	update(run, share);
}

static void add_json(struct smalti_vae_command *run, const struct smalti_vae_outcome *outcome)
{
	cJSON *object = cJSON_CreateObject();
	cJSON_AddStringToObject(object, "file", outcome->file);
	cJSON_AddStringToObject(object, "status", outcome->error ? "failed" : "ok");
	if (outcome->error)
		cJSON_AddStringToObject(object, "error", outcome->error->message);
	cJSON_AddNumberToObject(object, "width", (double)outcome->width);
	cJSON_AddNumberToObject(object, "height", (double)outcome->height);
	smalti_json_add_seconds(object, smalti_now() - run->image_began);
	smalti_json_line(object, &run->broken);
}

void smalti_vae_command_add(struct smalti_vae_command *run, const struct smalti_vae_outcome *outcome)
{
	if (outcome->error && outcome->error->code == SMALTI_ECANCELLED)
		return; /* that it was stopped is said at the end */
	*(outcome->error ? &run->failed : &run->made) += 1;
	if (outcome->error)
		smalti_progress_print(&run->progress, "%s: %s", run->command->name, outcome->error->message);
	if (run->settings->json)
		add_json(run, outcome);
	if (!outcome->error || run->made + run->failed < run->total) /* a last failure is no progress */
		update(run, 0);
}

void smalti_vae_command_lose(struct smalti_vae_command *run, const struct smalti_error *error)
{
	if (error)
		smalti_progress_print(&run->progress, "%s: %s", run->command->name, error->message);
	run->failed += run->made;
	run->made = 0;
}

void smalti_vae_command_plan(struct smalti_vae_command *run, const struct smalti_vae_estimate *estimate,
			     const char *file)
{
	if (run->settings->json)
		smalti_json_line(smalti_vae_estimate_json(estimate, file), &run->broken);
	else
		smalti_vae_estimate_print(estimate, run->doing);
	run->broken = run->broken || smalti_finish_stdout() != SMALTI_EXIT_OK;
}

static void summarize(struct smalti_vae_command *run, const char *result)
{
	const double seconds = smalti_now() - run->began;
	const bool named = strcmp(result, "-") != 0;
	char rate[32] = "", failed[48] = "";
	if (run->made > 1)
		snprintf(rate, sizeof(rate), " (%.3g/s)", (double)run->made / seconds);
	if (run->failed)
		snprintf(failed, sizeof(failed), ", %" PRId64 " failed", run->failed);
	smalti_progress_print(&run->progress, "%" PRId64 " image%s in %.1f s%s%s%s%s", run->made,
			      smalti_plural(run->made), seconds, rate, failed, named ? ": " : "",
			      named ? result : "");
}

static void summarize_json(struct smalti_vae_command *run, const char *signal)
{
	cJSON *object = cJSON_CreateObject();
	cJSON *summary = cJSON_AddObjectToObject(object, "summary");
	cJSON_AddNumberToObject(summary, "made", (double)run->made);
	cJSON_AddNumberToObject(summary, "failed", (double)run->failed);
	if (signal)
		cJSON_AddStringToObject(summary, "stopped", signal);
	smalti_json_add_seconds(summary, smalti_now() - run->began);
	smalti_json_line(object, &run->broken);
}

enum smalti_exit smalti_vae_command_end(struct smalti_vae_command *run, const char *result)
{
	const char *signal = run->made + run->failed < run->total ? smalti_signals_caught() : NULL;
	if (run->settings->json)
		summarize_json(run, signal);
	if (run->info.unused && run->made > 0 && !run->settings->quiet)
		smalti_progress_print(&run->progress, "%s: %s", run->command->name, run->info.unused);
	if (signal)
		smalti_progress_print(&run->progress,
				      "%s: stopped by %s: %" PRId64 " of %" PRId64 " images done",
				      run->command->name, signal, run->made, run->total);
	else if (run->made > 0 && !run->settings->quiet && !run->settings->json)
		summarize(run, result);
	else
		smalti_progress_end(&run->progress);
	if (signal || (run->failed && !run->made))
		return SMALTI_EXIT_FAILED;
	return run->failed ? SMALTI_EXIT_SOME_FAILED : SMALTI_EXIT_OK;
}

int smalti_check_stdout(const char *path, bool json, struct smalti_error *error)
{
	if (strcmp(path, "-") != 0)
		return 0;
	if (json)
		return smalti_fail(error, SMALTI_EINVAL, "-o -: cannot be combined with --json");
	if (isatty(STDOUT_FILENO))
		return smalti_fail(error, SMALTI_EINVAL,
				   "-o -: the standard output is a terminal; redirect it, or name a file");
	return 0;
}
