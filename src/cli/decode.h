/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_DECODE_H
#define SMALTI_CLI_DECODE_H

#include "cli/vae_command.h"

/* The options of `smalti decode`; strings belong to argv. */
struct smalti_decode_options {
	struct smalti_vae_settings vae;
	const char *output, *key;
	bool has_index, has_format, raw;
	int64_t index;
	int format; /* enum smalti_image_encoding */
	int bits;   /* 0: 8, 1: 16 */
};

extern const struct smalti_command smalti_decode_command;
/* What the names of images end in, by format. */
extern const char *const smalti_image_suffixes[];

/* The command itself: src/cli/decode.c. */
enum smalti_exit smalti_decode_run(void *options, int count, char **operands);

#endif
