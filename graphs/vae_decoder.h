/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_DECODER_H
#define SMALTI_GRAPHS_VAE_DECODER_H

#include "codelets/codelets.h"
#include "graphs/vae_plan.h"

/* The decoder of the VAE (specification 1.5, 5), layer by layer over bands of rows, exact at their
 * borders: halo rows, GroupNorm statistics merged over all bands, attention over all positions. */
struct smalti_vae_decoder;

struct smalti_vae_decoder *smalti_vae_decoder_new(struct smalti_scope *scope,
						  const struct smalti_vae_config *config,
						  const struct smalti_checkpoint *checkpoint,
						  enum smalti_dtype compute, struct smalti_error *error);
void smalti_vae_decoder_free(struct smalti_vae_decoder *vae);
const struct smalti_vae_config *smalti_vae_decoder_config(const struct smalti_vae_decoder *vae);
const struct smalti_vae_layers *smalti_vae_decoder_layers(const struct smalti_vae_decoder *vae);
/* See smalti_weights_set_transient(); for what is decoded from here on. At first it depends on their size. */
void smalti_vae_decoder_set_transient(struct smalti_vae_decoder *vae, bool transient);
/* Of what is there all the time: none when it is transient. */
int64_t smalti_vae_decoder_weight_bytes(const struct smalti_vae_decoder *vae);

/* A plan for a latent [height, width] in bands of `band_rows` rows: as smalti_vae_plan_make(). */
int smalti_vae_decoder_plan(const struct smalti_vae_decoder *vae, int64_t height, int64_t width,
			    int64_t band_rows, const struct smalti_vae_budget *budget,
			    struct smalti_vae_plan *plan, struct smalti_error *error);

/* Decodes f32 planes [latent_channels, height, width], the VAE's own (`raw`) or the diffusion model's, which
 * are scaled first, by a plan whose map 0 is [height, width]; finished rows go to `sink`, in order. */
void smalti_vae_decode(struct smalti_vae_decoder *vae, struct smalti_scope *scope,
		       struct smalti_tile *latents, bool raw, const struct smalti_vae_plan *plan,
		       smalti_row_sink sink, void *user);

#endif
