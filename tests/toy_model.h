/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/denoiser.h"
#include "graphs/trained.h"

/* A denoiser of another architecture than PixArt: each block is one attention to the caption between a norm,
 * whose shift, scale and gate depend on the timestep, and the stream. It has no self-attention, MLP or
 * positions. It takes of the configuration layers, heads, widths, channels and patch size. */
struct smalti_denoiser *toy_model_new(struct smalti_task_group *task_group,
				      const struct smalti_transformer_config *config,
				      const struct smalti_checkpoint *checkpoint, enum smalti_dtype compute,
				      struct smalti_error *error);
extern const struct smalti_trained_functions toy_model_trained;
