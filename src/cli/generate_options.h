/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_GENERATE_OPTIONS_H
#define SMALTI_CLI_GENERATE_OPTIONS_H

#include "cli/command.h"
#include "smalti/session.h"

/* The options of `smalti generate`; strings belong to argv. */
struct smalti_generate_options {
	struct smalti_string_list prompt;
	const char *prompts, *negative;
	int cleaning; /* enum smalti_cleaning */

	bool has_size, has_images, resolution_binning;
	struct smalti_size size;
	uint64_t seed;
	int64_t images, steps;
	double guidance;
	const char *scheduler, *latents;
	int noise; /* enum smalti_noise */

	const char *output;
	bool save_latents, resume, json, quiet;

	const char *model, *variant;
	const char *tokenizer, *text_encoder, *transformer, *vae, *scheduler_config;
	int precision; /* enum smalti_precision */

	struct smalti_session_options session;
	int64_t tile_tokens, tile_rows;
};

extern const struct smalti_command smalti_generate_command;

/* Checks what the table cannot: options that exclude each other, names, texts. */
int smalti_generate_check(const struct smalti_generate_options *options, struct smalti_error *error);

/* The command itself: src/cli/generate.c. */
enum smalti_exit smalti_generate_run(void *options, int count, char **operands);

#endif
