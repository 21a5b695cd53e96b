/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"
#include "cli/common_rows.h"
#include "cli/image_report.h"
#include "smalti/vae.h"

/* Options, the open VAE and reports, for `smalti decode` and `smalti encode`. */

/* Names of enum smalti_precision: the dtypes of stored feature maps. */
extern const char *const smalti_stores[];

/* The first member of both commands' options. */
struct smalti_vae_settings {
	const char *model; /* that the VAE is of, unless its own directory is given */
	struct smalti_vae_options vae;
	struct smalti_vae_request request; /* without extents */
	struct smalti_session_options session;
	bool json, quiet, plan;
};

#define SMALTI_VAE_DEFAULTS .session = SMALTI_SESSION_DEFAULTS

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
	{SMALTI_STRING(struct smalti_vae_settings, vae.directory), "vae-model", 0, "DIR", \
	 "load the VAE from DIR instead of the pipeline", .alias = "vae"}, \
	SMALTI_VARIANT_ROW(struct smalti_vae_settings, vae.variant), \
	SMALTI_PRECISION_ROW(struct smalti_vae_settings, vae.precision), \
	{SMALTI_GROUP("Machine")}, \
	SMALTI_POLICY_ROW(struct smalti_vae_settings), \
	SMALTI_WORKER_ROWS(struct smalti_vae_settings), \
	SMALTI_SHARES_ROW(struct smalti_vae_settings, request.shares, "the image's rows", ""), \
	SMALTI_REPRODUCIBLE_ROW(struct smalti_vae_settings), \
	SMALTI_MEMORY_ROW(struct smalti_vae_settings), \
	{SMALTI_STRING(struct smalti_vae_settings, request.scratch), "scratch", 0, "DIR", \
	 "directory for an unlinked temporary file with the data that does not fit under --memory-limit"}, \
	{SMALTI_CHOICE(struct smalti_vae_settings, request.store), "store", 0, "TYPE", \
	 "data type of feature maps that are kept or offloaded when memory is short; bf16 is not exact", \
	 .choices = smalti_stores}, \
	SMALTI_TILE_ROWS_ROW(struct smalti_vae_settings, request.tile_rows), \
	SMALTI_TRACE_ROW(struct smalti_vae_settings)
/* clang-format on */

struct smalti_vae_command {
	const struct smalti_command *command;
	const struct smalti_vae_settings *settings;
	const char *doing; /* "decoding" */
	struct smalti_session *session;
	struct smalti_vae *vae;
	struct smalti_vae_info info;
	struct smalti_vae_request request; /* of an image; `user` is the command */
	void *image;                       /* that is being read or written */
	struct smalti_image_report report;
	double image_began;          /* smalti_now() */
	struct smalti_error stopped; /* why no image follows, unless a signal came */
};

/* Has rank 0 open its files, and all ranks (ranks/ranks.h) the session and the VAE, or none. */
int smalti_vae_command_open(struct smalti_vae_command *run,
			    int (*open_files)(void *user, struct smalti_error *error), void *user,
			    struct smalti_error *error);
/* Computes on another rank what rank 0 says. */
enum smalti_exit smalti_vae_command_follow(const struct smalti_vae_command *run);
/* Closes the VAE and the session. Returns `status`, unless that fails or the standard output took no more. */
enum smalti_exit smalti_vae_command_close(struct smalti_vae_command *run, enum smalti_exit status);

/* Begins the report on `total` images. */
void smalti_vae_command_begin(struct smalti_vae_command *run, int64_t total);
/* Tells whether another image is to begin, and starts its clock. */
bool smalti_vae_command_next(struct smalti_vae_command *run);
/* Reports an image that was made (error NULL) or failed; `file` is its name for the user. */
void smalti_vae_command_add(struct smalti_vae_command *run, const char *file,
			    const struct smalti_error *error);
/* Prints what the request takes (--plan), by one of the two functions of smalti/vae.h; `file` is what it is
 * for. */
typedef int smalti_vae_estimator(struct smalti_vae *vae, const struct smalti_vae_request *request,
				 struct smalti_vae_estimate *estimate, struct smalti_error *error);
int smalti_vae_command_plan(struct smalti_vae_command *run, smalti_vae_estimator *make_estimate,
			    const char *file, struct smalti_error *error);
/* Prints the last line; `result` is the file or directory that was asked for. */
enum smalti_exit smalti_vae_command_end(struct smalti_vae_command *run, const char *result);
