/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_EXTRACT_H
#define SMALTI_CLI_EXTRACT_H

#include "cli/command.h"
#include "smalti/session.h"

/* The options of `smalti extract`; strings belong to argv. */
struct smalti_extract_settings {
	const char *output, *image_root;
	bool t5, vae;
	struct smalti_string_list caption_keys;
	int cleaning, image_size, fit, orientation, dtype, compress; /* indices of the choices */
	int64_t max_tokens;
	const char *range, *shard;
	int64_t shard_items, shard_bytes, lease;
	bool retry_failed, append, allow_mixed_isa, json, quiet;
	const char *model, *tokenizer, *text_encoder, *vae_model, *variant;
	int precision; /* enum smalti_precision */
	struct smalti_session_options session;
};

extern const struct smalti_command smalti_extract_command;
/* By the index of the choice. */
extern const int64_t smalti_extract_image_sizes[];

/* The command itself: src/cli/extract.c. */
enum smalti_exit smalti_extract_run(void *options, int count, char **operands);

#endif
