/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* A checkpoint of a run, RUN/step-N (docs/training.md), has everything that the next steps depend on:
 *
 *   transformer/, ema/     configuration and weights in f32, in diffusers' layout; ema/ if there is one
 *   adapter/, ema/         instead, of an adapter: in peft's layout, and the weights again in diffusers'
 *   optimizer.safetensors  the optimizer's state
 *   null_caption.safetensors
 *   state.json             counts, position in the data, identity, digests of the files above
 *
 * It is written under another name, synced, read back and renamed. Under its name it is complete. */

/* What the trainer does not have. */
struct smalti_saved {
	char *directory; /* of the checkpoint; NULL: there is none */
	int64_t step;
	cJSON *identity;
	cJSON *files; /* digests */
	bool bare;    /* they are of the first layout */
	char *config; /* text of the weights' configuration: that with which the run began, not the
			 checkpoint's */
	struct smalti_null_caption null_caption;
	struct smalti_data_position position;
	struct smalti_training_state state;
};

void smalti_saved_free(struct smalti_saved *saved);

/* Reads a run's last checkpoint, without its tensors except the null caption: 1, or 0 if there is none.
 * Remains of a killed process are removed. */
int smalti_saved_read(const char *run, struct smalti_saved *saved, struct smalti_error *error);
/* Loads its tensors into the trainer's tiles. */
int smalti_saved_load(const struct smalti_saved *saved, struct smalti_trainer *trainer,
		      struct smalti_error *error);
/* Writes the trainer as it is; `saved` has the identity, the configuration and the null caption. Of older
 * ones the last `keep` − 1 stay (0: all). */
int smalti_saved_write(const char *run, const struct smalti_saved *saved, struct smalti_trainer *trainer,
		       const struct smalti_data_position *position, int64_t keep, struct smalti_error *error);
/* Returns the bytes of a checkpoint's tensors. */
int64_t smalti_saved_bytes(const struct smalti_trainer *trainer);
/* Inserts on another rank (ranks/ranks.h) the tasks of rank 0's smalti_saved_write(). */
int smalti_saved_follow(struct smalti_trainer *trainer, struct smalti_error *error);
