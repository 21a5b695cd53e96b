/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_GRAPHS_VAE_DECODER_H
#define SMALTI_GRAPHS_VAE_DECODER_H

#include "codelets/codelets.h"
#include "graphs/weights.h"
#include "io/config.h"

/* The decoder of the VAE (specification 1.5, 5), layer by layer over bands of rows, exact at their
 * borders: halo rows, GroupNorm statistics merged over all bands, attention over all positions. */
struct smalti_vae_decoder;

struct smalti_vae_decoder *smalti_vae_decoder_new(struct smalti_scope *scope,
						  const struct smalti_vae_config *config,
						  const struct smalti_checkpoint *checkpoint,
						  enum smalti_dtype compute, struct smalti_error *error);
void smalti_vae_decoder_free(struct smalti_vae_decoder *vae);
const struct smalti_vae_config *smalti_vae_decoder_config(const struct smalti_vae_decoder *vae);
/* See smalti_store_set_transient(); for what is decoded from here on. At first it depends on their size. */
void smalti_vae_decoder_set_transient(struct smalti_vae_decoder *vae, bool transient);
int64_t smalti_vae_decoder_weight_bytes(const struct smalti_vae_decoder *vae);
/* The most that decoding a latent [height, width] in bands of `band_rows` holds at once, over `workers`, with
 * the weights made for it when they are transient. */
int64_t smalti_vae_decoder_working_bytes(const struct smalti_vae_decoder *vae, int64_t height, int64_t width,
					 int64_t band_rows, int workers);

/* The arithmetic of decoding a latent [height, width]. */
double smalti_vae_decoder_flops(const struct smalti_vae_decoder *vae, int64_t height, int64_t width);

/* Decodes latents f32 planes [latent_channels, height, width] (in the diffusion model's scale) in bands of
 * `band_rows` latent rows; finished rows go to `sink`, in order. */
void smalti_vae_decode(struct smalti_vae_decoder *vae, struct smalti_scope *scope,
		       struct smalti_tile *latents, int64_t height, int64_t width, int64_t band_rows,
		       smalti_row_sink sink, void *user);

#endif
