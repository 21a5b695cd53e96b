/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "cli/command.h"
#include "smalti/session.h"
#include "smalti/train.h"

/* The options of `smalti train`; strings belong to argv. */
struct smalti_train_settings {
	struct smalti_train_options train;
	struct smalti_session_options session;
	struct smalti_string_list caption_keys, sample_prompts;
	const char *betas, *epsilons, *predict;
	int latents;
	bool has_betas, has_epsilons, has_weight_decay;
	bool json, quiet;
};

/* The largest number that an option takes if nothing else limits it. */
static const double SMALTI_TRAIN_LARGEST = 1e30;

/* Runs the command: src/cli/train.c. */
enum smalti_exit smalti_train_run(void *options, int count, char **operands);
