/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"
#include "smalti/extract.h"
#include "smalti/session.h"

/* The options of `smalti extract`; strings belong to argv. */
struct smalti_extract_settings {
	struct smalti_extract_options extract;
	struct smalti_session_options session;
	struct smalti_string_list caption_keys, lora;
	const char *predict;
	bool t5, vae, json, quiet;
	int image_size, orientation; /* indices of the choices */
	const char *range, *shard;
};

/* Runs the command: src/cli/extract.c. */
enum smalti_exit smalti_extract_run(void *options, int count, char **operands);
