/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/saved.h"

/* clang-format off */
#define SMALTI_TRAIN_DEFAULTS {                                                                                     \
	.data = {.drop = 0.1},                                                                                       \
	.lora = {.targets = "attention"},                                                                            \
	.steps = 1000,                                                                                               \
	.batch = 8,                                                                                                  \
	.lanes = 8,                                                                                                  \
	.optimizer = {.rate = 2e-5, .warmup = 100, .betas = {0.9, 0.999, 0.9999}, .epsilons = {1e-10, 1e-16},        \
		      .weight_decay = 0.03, .limit = 1, .clip = 1},                                                  \
	.ema = 0.9999,                                                                                               \
	.loss_scale = {.initial = 65536, .growth = 2, .backoff = 0.5, .interval = 2000},                             \
	.save_every = 100,                                                                                           \
	.keep = 3,                                                                                                   \
	.samples = {.steps = 20},                                                                                    \
}
/* clang-format on */

/* Checks options. SMALTI_EINVAL if any is out of range. */
int smalti_train_check(const struct smalti_train_options *options, struct smalti_error *error);

/* RUN/log.jsonl, to which every run of the directory adds its lines (docs/training.md). */
struct smalti_training_log;

/* The facts in the first line of a process. */
struct smalti_training_log_head {
	const char *run; /* its directory */
	struct smalti_session *session;
	const cJSON *identity;
	int64_t step, steps;
};
/* Takes the error, once, if the log cannot be written (any more). The run continues without it. */
typedef void smalti_training_log_lost(void *user, const struct smalti_error *error);

struct smalti_training_log *smalti_training_log_open(const struct smalti_training_log_head *head,
						     smalti_training_log_lost *lost, void *user);
void smalti_training_log_step(struct smalti_training_log *log, const struct smalti_training_state *state,
			      int64_t epoch, const struct smalti_step_result *result,
			      const struct smalti_step_memory *memory, double data_seconds);
void smalti_training_log_evaluation(struct smalti_training_log *log, int64_t step, const char *of,
				    const struct smalti_evaluation *evaluation);
/* Adds the line of a checkpoint: the bytes of its tensors, and the seconds that it took. */
void smalti_training_log_checkpoint(struct smalti_training_log *log, int64_t step, int64_t bytes,
				    double seconds);
/* Adds a line {KEY: TEXT}. */
void smalti_training_log_note(struct smalti_training_log *log, const char *key, const char *text);
/* Closes the log, with what devices did, if there are any. */
void smalti_training_log_close(struct smalti_training_log *log);
