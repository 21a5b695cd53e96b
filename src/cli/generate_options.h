/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_GENERATE_OPTIONS_H
#define SMALTI_CLI_GENERATE_OPTIONS_H

#include "cli/command.h"
#include "smalti/generate.h"

/* The options of `smalti generate`; strings belong to argv. */
struct smalti_generate_options {
	struct smalti_string_list prompt;
	const char *prompts, *latents, *output;
	struct smalti_request request; /* of every prompt, unless its line says otherwise */
	struct smalti_model_options model;
	struct smalti_session_options session;
	bool has_size, has_images, save_latents, resume, json, quiet;
};

/* Checks what the table cannot: options that exclude each other, names, texts. */
int smalti_generate_check(const struct smalti_generate_options *options, struct smalti_error *error);

/* The command itself: src/cli/generate.c. */
enum smalti_exit smalti_generate_run(void *options, int count, char **operands);

#endif
