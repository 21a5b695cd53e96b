/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "train/trainer.h"

/* Checkpoints of a run, RUN/step-N (docs/training.md): all that the next steps depend on.
 *
 *   transformer/, ema/     configuration and weights in f32, in diffusers' layout; ema/ if there is one
 *   optimizer.safetensors  the optimizer's state
 *   null_caption.safetensors
 *   state.json             counts, position in the data, identity, digests of the files above
 *
 * One is written under another name, synced, read back and renamed: under its name it is whole. */

/* What the trainer has not. */
struct smalti_saved {
	char *directory; /* of the checkpoint; NULL: there is none */
	int64_t step;
	cJSON *identity;
	cJSON *files; /* digests */
	bool bare;    /* they are those of the first layout */
	char *config; /* text of the transformer's config.json; no checkpoint's, but what the run was begun
			 with */
	struct smalti_null_caption null_caption;
	struct smalti_data_position position;
	struct smalti_training_state state;
};

void smalti_saved_free(struct smalti_saved *saved);

/* The last one of a run, without its tensors but for the null caption: 1, or 0 where there is none. What a
 * killed process has left is removed. */
int smalti_saved_read(const char *run, struct smalti_saved *saved, struct smalti_error *error);
/* Its tensors into the trainer's tiles. */
int smalti_saved_load(const struct smalti_saved *saved, struct smalti_trainer *trainer,
		      struct smalti_error *error);
/* Of the trainer as it is; `saved` has the identity, the configuration and the null caption. Of the older
 * ones the last `keep` − 1 stay (0: all). */
int smalti_saved_write(const char *run, const struct smalti_saved *saved, struct smalti_trainer *trainer,
		       const struct smalti_data_position *position, int64_t keep, struct smalti_error *error);
