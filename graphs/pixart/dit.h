/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "checkpoint/config.h"
#include "graphs/denoiser.h"

/* Makes the diffusion transformer (docs/reference.md 1.3, 1.4, 3). */
struct smalti_denoiser *smalti_dit_new(struct smalti_task_group *task_group,
				       const struct smalti_transformer_config *config,
				       const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				       struct smalti_error *error);
/* See struct smalti_denoiser_functions. */
struct smalti_denoiser *smalti_dit_sketch(const struct smalti_denoiser *denoiser,
					  struct smalti_task_group *task_group,
					  const struct smalti_checkpoint *checkpoint, int64_t layers,
					  struct smalti_error *error);
