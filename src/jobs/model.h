/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_MODEL_H
#define SMALTI_JOBS_MODEL_H

#include "checkpoint/config.h"
#include "graphs/denoiser.h"
#include "graphs/vae_ends.h"
#include "jobs/digest.h"
#include "jobs/prompt_encoder.h"
#include "rt/session.h"
#include "smalti/model.h"

struct smalti_model {
	struct smalti_session *session;
	struct smalti_task_group *task_group; /* of the tasks that make weights */
	enum smalti_dtype compute;
	struct smalti_prompt_encoder text;
	struct smalti_checkpoint *dit_checkpoint, *vae_checkpoint;
	struct smalti_denoiser *denoiser;
	struct smalti_transformer_config transformer; /* that it was made by */
	struct smalti_vae_net *vae;                   /* the decoder */
	int64_t mapped_bytes; /* of the files, that have to be in memory under the session's limit */
	char *words;          /* that it was trained on; NULL: not known */
	char *scheduler_path;
	struct smalti_scheduler_config scheduler;
	struct smalti_error unused; /* says which tensors are not used, if any: no failure */
	char digest[SMALTI_DIGEST_LENGTH + 1];
};

/* The directory of a component: the one given, else NAME below the pipeline's directory. For free(). */
char *smalti_model_component(const char *given, const char *directory, const char *name,
			     struct smalti_error *error);

/* Pixels to a latent. */
int64_t smalti_model_factor(const struct smalti_model *model);

#endif
