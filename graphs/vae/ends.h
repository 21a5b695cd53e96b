/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "codelets/codelets.h"
#include "graphs/vae/plan.h"

/* A VAE's net from one end to the other (docs/reference.md 1.5, 5), layer by layer over bands of rows, exact
 * at their borders: halo rows, GroupNorm statistics merged over all bands, attention over all positions. */

/* Decodes f32 planes [latent_channels, height, width], the VAE's own (`raw`) or the diffusion model's, which
 * are scaled first, by a plan whose map 0 is [height, width]; finished rows go to `sink`, in order. */
void smalti_vae_decode(const struct smalti_vae_net *net, struct smalti_task_group *task_group,
		       struct smalti_tile *latents, bool raw, const struct smalti_vae_plan *plan,
		       smalti_row_sink sink, void *user);

/* Encodes the image that `source` hands over row by row, in order, to the distribution of its latents: f32
 * planes [2·latent_channels, height, width], the means and then the standard deviations, unscaled. By a plan
 * whose map 0 is the image, in bands of whole latent rows. */
struct smalti_tile *smalti_vae_encode(const struct smalti_vae_net *net, struct smalti_task_group *task_group,
				      const struct smalti_vae_plan *plan, smalti_row_source source,
				      void *user);
