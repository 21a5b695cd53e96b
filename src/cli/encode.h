/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_ENCODE_H
#define SMALTI_CLI_ENCODE_H

#include "cli/vae_command.h"

enum smalti_latents_format { SMALTI_LATENTS_SAFETENSORS, SMALTI_LATENTS_NPY };

/* The options of `smalti encode`; strings belong to argv. */
struct smalti_encode_options {
	struct smalti_vae_settings vae;
	const char *output;
	bool has_format, has_seed, sample;
	int format; /* enum smalti_latents_format */
	uint64_t seed;
};

extern const struct smalti_command smalti_encode_command;
/* What the names of files of latents end in, by format. */
extern const char *const smalti_latents_suffixes[];

/* The command itself: src/cli/encode.c. */
enum smalti_exit smalti_encode_run(void *options, int count, char **operands);

#endif
