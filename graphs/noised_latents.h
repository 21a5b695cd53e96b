/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "samplers/diffusion_loss.h"

/* Latents with noise at a timestep, and the loss of a model that predicts the noise: for training, evaluation
 * and scores. All are planes f32 [channels, height, width]. */
struct smalti_noised_latents {
	struct smalti_tile *x0, *noise, *xt;
	int64_t count, t;
};

/* Makes them from the posterior's means and, with `draws`, the deviations behind them. */
struct smalti_noised_latents smalti_noised_latents_insert(struct smalti_task_group *task_group,
							  struct smalti_tile *moments,
							  const struct training_sample_arguments *arguments);
void smalti_noised_latents_release(const struct smalti_noised_latents *latents);

/* Inserts the loss of an output, whose second half of channels, if any, is the variance. *parts is filled in
 * when the task group has ended. `count` and `t` are those of the latents. `gradient`: NULL, or a tile that
 * receives it. */
void smalti_denoising_loss_insert(struct smalti_task_group *task_group,
				  const struct smalti_noised_latents *latents, struct smalti_tile *output,
				  struct smalti_tile *gradient,
				  const struct diffusion_loss_arguments *arguments,
				  struct smalti_loss_parts *parts);
