/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_TILING_H
#define SMALTI_JOBS_VAE_TILING_H

#include "graphs/vae_decoder.h"
#include "graphs/vae_encoder.h"
#include "rt/session.h"

/* What a half of a VAE is asked for. */
struct smalti_vae_half {
	const struct smalti_session *session;
	const struct smalti_vae_decoder *decoder; /* the one or the other */
	const struct smalti_vae_encoder *encoder;
	int64_t height, width; /* of the latent */
	int64_t tile_rows;     /* of it in a band; 0: as suits best */
	const char *scratch;   /* folder, or NULL */
	bool store_bf16;
};

const struct smalti_vae_layers *smalti_vae_half_layers(const struct smalti_vae_half *half);
/* Bytes that are resident besides what a plan holds. */
int64_t smalti_vae_half_fixed_bytes(const struct smalti_vae_half *half);
/* What a plan may take in the session's memory and on the scratch folder's disk; -1 with an error. */
int smalti_vae_half_budget(const struct smalti_vae_half *half, struct smalti_vae_budget *budget,
			   struct smalti_error *error);
/* The fastest plan in that. SMALTI_ENOMEM with a message that says the least memory that would do. Free it in
 * any case. */
int smalti_vae_half_plan(const struct smalti_vae_half *half, struct smalti_vae_plan *plan,
			 struct smalti_error *error);
/* The same, and the file in the scratch folder if the plan spills anything. End it in any case. */
int smalti_vae_half_begin(const struct smalti_vae_half *half, struct smalti_vae_plan *plan,
			  struct smalti_error *error);
void smalti_vae_half_end(struct smalti_vae_plan *plan);

#endif
