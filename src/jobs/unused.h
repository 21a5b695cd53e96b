/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_UNUSED_H
#define SMALTI_JOBS_UNUSED_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/config.h"

/* Looks for tensors of a checkpoint that the component does not have, LoRA weights for instance, and says in
 * *note which there are: a line for the user, no failure. It keeps what is there from other components, and
 * stays as it is for a checkpoint that has none. What other programs leave in files and nobody uses is passed
 * over. -1 when memory is short. @{ */
int smalti_unused_t5(const struct smalti_checkpoint *checkpoint, const struct smalti_t5_config *config,
		     struct smalti_error *note, struct smalti_error *error);
int smalti_unused_transformer(const struct smalti_checkpoint *checkpoint,
			      const struct smalti_transformer_config *config, struct smalti_error *note,
			      struct smalti_error *error);
int smalti_unused_vae(const struct smalti_checkpoint *checkpoint, const struct smalti_vae_config *config,
		      struct smalti_error *note, struct smalti_error *error);
/* @} */

#endif
