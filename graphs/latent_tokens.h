/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "graphs/strategy/strategy.h"

struct patchify_arguments;

/* Latents, or a prediction: planes f32 [channels, height, width], or tokens in bands. A token is a square of
 * latents in the model's order. */
struct smalti_latent_form {
	const struct smalti_tokens *tokens; /* the bands */
	int64_t height, width, patch;
	int64_t channels;
	bool channels_last; /* in a token */
};

/* Returns a band's arguments for the kernels between planes and tokens. */
struct patchify_arguments smalti_latent_band(const struct smalti_latent_form *form, int64_t band,
					     double scale);

/* Returns the planes times scale as tokens. */
struct smalti_grid smalti_latents_cut(struct smalti_task_group *task_group,
				      const struct smalti_latent_form *form, struct smalti_tile *planes,
				      double scale);

/* Joins the bands to planes, in a new tile. */
struct smalti_tile *smalti_latents_join(struct smalti_task_group *task_group,
					const struct smalti_latent_form *form,
					const struct smalti_grid *tokens);
