/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "share/hold.h"
#include "train/run.h"
#include "train/sample_images.h"

/* The files src/train/run*.c share this. */

/* One call of smalti_train(). */
struct smalti_training_run {
	struct smalti_session *session;
	const struct smalti_train_options *options;
	smalti_train_callback *on_progress;
	void *user;
	struct smalti_train_result *result;
	struct smalti_hold *hold; /* of the output: one process at a time trains there */
	struct smalti_training_data *data, *held_out;
	struct smalti_transformer_config config;
	struct smalti_checkpoint *checkpoint; /* of the first weights; NULL: they are drawn */
	struct smalti_saved saved;            /* the last checkpoint, or its values that the next one keeps */
	bool has_null_caption;                /* the last checkpoint has the null caption of these options */
	struct smalti_trainer trainer;
	struct smalti_sample_images *sample_images; /* NULL: there are none */
	struct smalti_training_log *log;
	struct smalti_training_sample *samples;
	int64_t saved_step; /* step of the last checkpoint; -1: there is none */
};

/* Tells the caller, who may stop the run then. */
void smalti_training_run_tell(struct smalti_training_run *run, const char *note);

/* Has each rank read the values of its own samples (run_batch.c). */
int smalti_training_run_deal(struct smalti_training_run *run, struct smalti_error *error);
/* Reads the next batch, which is the same on all ranks. */
int smalti_training_run_next_batch(struct smalti_training_run *run, struct smalti_error *error);

/* Opens all that the first step needs, from the checkpoint or new (run_open.c). Close it after a failure,
 * too. */
int smalti_training_run_open(struct smalti_training_run *run, struct smalti_error *error);
void smalti_training_run_close(struct smalti_training_run *run);

/* Checks that the transformer can be trained on the features of `directory` (run_fit.c). */
int smalti_training_run_check_fit(const struct smalti_training_run *run,
				  const struct smalti_training_data *data, const char *directory,
				  struct smalti_error *error);
/* Checks that its VAE made their latents. */
int smalti_training_run_check_scaling(const struct smalti_training_run *run, struct smalti_error *error);
/* Checks before the first step that any step of the data fits into memory. */
int smalti_training_run_check_memory(struct smalti_training_run *run, struct smalti_error *error);

/* Tells whether the checkpoint's is of these features' text encoder, and padded as the options say
 * (run_null_caption.c). */
bool smalti_training_run_same_null_caption(const struct smalti_training_run *run, const cJSON *identity);
int smalti_training_run_encode_null_caption(struct smalti_training_run *run, struct smalti_error *error);
