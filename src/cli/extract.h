/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_EXTRACT_H
#define SMALTI_CLI_EXTRACT_H

#include "cli/command.h"
#include "smalti/extract.h"

/* The options of `smalti extract`; strings belong to argv. */
struct smalti_extract_settings {
	struct smalti_extract_options extract;
	struct smalti_session_options session;
	struct smalti_string_list caption_keys;
	bool t5, vae, json, quiet;
	int image_size, orientation; /* indices of the choices */
	const char *range, *shard;
};

/* By the index of the choice. */
extern const int64_t smalti_extract_image_sizes[];

/* The command itself: src/cli/extract.c. */
enum smalti_exit smalti_extract_run(void *options, int count, char **operands);

#endif
