/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_TILING_H
#define SMALTI_JOBS_VAE_TILING_H

#include "graphs/vae_decoder.h"
#include "graphs/vae_encoder.h"
#include "rt/session.h"

/* How a VAE alone fits into a session's memory: beside the program and the weights, `scratch` bytes on a disk
 * (0: none), at the speeds given (NULL: an ordinary CPU's). */
struct smalti_vae_budget smalti_vae_session_budget(const struct smalti_session *session, int64_t weight_bytes,
						   int64_t scratch, const double *seconds_per_flop);

/* The fastest plan for a latent [height, width], in bands of `tile_rows` of its rows, or with 0 of as many as
 * suit best. As smalti_vae_plan_make(). */
int smalti_vae_tile_decoding(const struct smalti_vae_decoder *vae, int64_t height, int64_t width,
			     int64_t tile_rows, const struct smalti_vae_budget *budget,
			     struct smalti_vae_plan *plan, struct smalti_error *error);
int smalti_vae_tile_encoding(const struct smalti_vae_encoder *vae, int64_t height, int64_t width,
			     int64_t tile_rows, const struct smalti_vae_budget *budget,
			     struct smalti_vae_plan *plan, struct smalti_error *error);

#endif
