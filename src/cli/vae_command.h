/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_VAE_COMMAND_H
#define SMALTI_CLI_VAE_COMMAND_H

#include "cli/command.h"
#include "cli/common_rows.h"
#include "cli/progress.h"
#include "smalti/vae.h"

/* What `smalti decode` and `smalti encode` have in common: options, the open VAE, reports. */

/* The first member of both commands' options. */
struct smalti_vae_settings {
	const char *model, *vae, *variant;
	int precision, store;                  /* enum smalti_precision */
	struct smalti_session_options session; /* without its scratch */
	const char *scratch;
	int64_t tile_rows;
	bool json, quiet, plan;
};

#define SMALTI_VAE_DEFAULTS                                                                                  \
	{                                                                                                    \
		.session = {.policy = "lws" }                                                                \
	}

/* clang-format off */
#define SMALTI_VAE_REPORT_ROWS \
	{SMALTI_FLAG(struct smalti_vae_settings, json), "json", 0, NULL, \
	 "print one JSON object per image on standard output"}, \
	{SMALTI_FLAG(struct smalti_vae_settings, plan), "plan", 0, NULL, \
	 "only print the plan: which feature maps are kept, offloaded or recomputed, and the memory, scratch space and time needed"}, \
	{SMALTI_FLAG(struct smalti_vae_settings, quiet), "quiet", 'q', NULL, "print errors only"}

#define SMALTI_VAE_ROWS \
	{SMALTI_GROUP("Model")}, \
	{SMALTI_STRING(struct smalti_vae_settings, model), "model", 'm', "DIR", \
	 "directory of a pipeline in diffusers' layout, of which only the VAE is used; default: the embedded model"}, \
	{SMALTI_STRING(struct smalti_vae_settings, vae), "vae-model", 0, "DIR", \
	 "load the VAE from DIR instead of the pipeline", .alias = "vae"}, \
	SMALTI_VARIANT_ROW(struct smalti_vae_settings), \
	SMALTI_PRECISION_ROW(struct smalti_vae_settings), \
	{SMALTI_GROUP("Machine")}, \
	SMALTI_POLICY_ROW(struct smalti_vae_settings), \
	SMALTI_CPUS_ROW(struct smalti_vae_settings), \
	SMALTI_MEMORY_ROW(struct smalti_vae_settings), \
	{SMALTI_STRING(struct smalti_vae_settings, scratch), "scratch", 0, "DIR", \
	 "directory for an unlinked temporary file with the data that does not fit under --memory-limit"}, \
	{SMALTI_CHOICE(struct smalti_vae_settings, store), "store", 0, "TYPE", \
	 "data type of feature maps that are kept or offloaded when memory is short; bf16 is not exact", \
	 .choices = smalti_precisions}, \
	SMALTI_TILE_ROWS_ROW(struct smalti_vae_settings), \
	SMALTI_TRACE_ROW(struct smalti_vae_settings)
/* clang-format on */

struct smalti_vae_command {
	const struct smalti_command *command;
	const struct smalti_vae_settings *settings;
	const char *doing; /* "decoding" */
	struct smalti_session *session;
	struct smalti_vae *vae;
	struct smalti_vae_info info;
	struct smalti_progress progress;
	int64_t total, made, failed; /* images */
	double began, image_began;   /* smalti_now() */
	bool broken;                 /* the standard output does not take more */
};

/* Starts the session and opens the VAE. */
int smalti_vae_command_open(struct smalti_vae_command *run, struct smalti_error *error);
/* Ends the session; `status` unless that fails, or the standard output took no more. */
enum smalti_exit smalti_vae_command_close(struct smalti_vae_command *run, enum smalti_exit status);

/* Begins the report on `total` images. */
void smalti_vae_command_begin(struct smalti_vae_command *run, int64_t total);
/* Whether another image is to be begun. It is then what is being done. */
bool smalti_vae_command_next(struct smalti_vae_command *run);
/* The progress callback of a job, `user` being the command: shows it, and cancels after a signal. */
void smalti_vae_command_watch(void *user, double share);

/* An image that is through: made (error NULL) or failed. */
struct smalti_vae_outcome {
	const char *file;      /* as it is named to the user */
	int64_t width, height; /* pixels */
	const struct smalti_error *error;
};
void smalti_vae_command_add(struct smalti_vae_command *run, const struct smalti_vae_outcome *outcome);
/* The one result of all images is lost: what was made counts as failed. `error` (or NULL) is reported. */
void smalti_vae_command_lose(struct smalti_vae_command *run, const struct smalti_error *error);
/* Prints a plan (--plan); `file` is what it is for. */
void smalti_vae_command_plan(struct smalti_vae_command *run, const struct smalti_vae_estimate *estimate,
			     const char *file);
/* The last line; `result` is the file or directory that was asked for. */
enum smalti_exit smalti_vae_command_end(struct smalti_vae_command *run, const char *result);

/* -1 where a file cannot go to the standard output: a terminal, or one that is taken by --json. */
int smalti_check_stdout(const char *path, bool json, struct smalti_error *error);

#endif
