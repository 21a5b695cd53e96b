/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_ENCODER_H
#define SMALTI_GRAPHS_VAE_ENCODER_H

#include "codelets/codelets.h"
#include "graphs/vae_plan.h"

/* The encoder of the VAE (specification 5.2), in bands as the decoder is, and as exact. */
struct smalti_vae_encoder;

struct smalti_vae_encoder *smalti_vae_encoder_new(struct smalti_scope *scope,
						  const struct smalti_vae_config *config,
						  const struct smalti_checkpoint *checkpoint,
						  enum smalti_dtype compute, struct smalti_error *error);
void smalti_vae_encoder_free(struct smalti_vae_encoder *vae);
const struct smalti_vae_config *smalti_vae_encoder_config(const struct smalti_vae_encoder *vae);
const struct smalti_vae_layers *smalti_vae_encoder_layers(const struct smalti_vae_encoder *vae);
int64_t smalti_vae_encoder_weight_bytes(const struct smalti_vae_encoder *vae);

/* A plan for a latent [height, width] in bands of `band_rows` of its rows: as smalti_vae_decoder_plan(). */
int smalti_vae_encoder_plan(const struct smalti_vae_encoder *vae, int64_t height, int64_t width,
			    int64_t band_rows, const struct smalti_vae_budget *budget,
			    struct smalti_vae_plan *plan, struct smalti_error *error);

/* Encodes the picture that `source` hands over row by row, in order, to the distribution of its latents: f32
 * planes [2·latent_channels, height, width], the means and then the standard deviations, unscaled. By a plan
 * whose map 0 is the picture, in bands of whole latent rows. */
struct smalti_tile *smalti_vae_encode(struct smalti_vae_encoder *vae, struct smalti_scope *scope,
				      const struct smalti_vae_plan *plan, smalti_row_source source,
				      void *user);

#endif
