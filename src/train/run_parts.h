/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "store/lock.h"
#include "train/run.h"
#include "train/sample_images.h"

/* What the files of src/train/run*.c share. */

/* One call of smalti_train(). */
struct smalti_training_run {
	struct smalti_session *session;
	const struct smalti_train_options *options;
	smalti_train_callback *on_progress;
	void *user;
	struct smalti_train_result *result;
	struct smalti_heartbeat *heartbeat;
	struct smalti_lock *lock;
	char holder[256]; /* of the lock, if it is another */
	bool locked;
	struct smalti_training_data *data, *held_out;
	struct smalti_transformer_config config;
	struct smalti_checkpoint *checkpoint; /* of the first weights; NULL: they are drawn */
	struct smalti_saved saved;            /* the last one, or what the next has in common with it */
	bool has_null_caption;                /* the last one has that of these options */
	struct smalti_trainer trainer;
	struct smalti_sample_images *sample_images; /* NULL: there are none */
	struct smalti_training_log *log;
	struct smalti_training_sample *samples;
	int64_t saved_step; /* that the last checkpoint is of; -1: there is none */
};

/* To who called; who may stop the run then. */
void smalti_training_run_tell(struct smalti_training_run *run, const char *note);

/* run_open.c: all that the first step needs; then what the run has is the checkpoint's, or new. Close it
 * where this fails, too. */
int smalti_training_run_open(struct smalti_training_run *run, struct smalti_error *error);
void smalti_training_run_close(struct smalti_training_run *run);

/* run_fit.c: whether the transformer can be trained on the features of `directory`, */
int smalti_training_run_check_fit(const struct smalti_training_run *run,
				  const struct smalti_training_data *data, const char *directory,
				  struct smalti_error *error);
/* whether its VAE made their latents, */
int smalti_training_run_check_scaling(const struct smalti_training_run *run, struct smalti_error *error);
/* and whether any step that the data may bring fits into memory, which is known before the first. */
int smalti_training_run_check_memory(struct smalti_training_run *run, struct smalti_error *error);

/* run_null_caption.c: whether the checkpoint's is of the text encoder of these features, and padded as they
 * ask for. */
bool smalti_training_run_same_null_caption(const struct smalti_training_run *run, const cJSON *identity);
int smalti_training_run_encode_null_caption(struct smalti_training_run *run, struct smalti_error *error);
