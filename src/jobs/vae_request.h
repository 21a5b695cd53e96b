/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_REQUEST_H
#define SMALTI_JOBS_VAE_REQUEST_H

#include "graphs/vae_ends.h"
#include "rt/session.h"

/* What a VAE's net is asked for. */
struct smalti_vae_request {
	const struct smalti_session *session;
	const struct smalti_vae_net *net;
	int64_t height, width; /* of the latent */
	int64_t tile_rows;     /* of it in a band; 0: as suits best */
	const char *scratch;   /* directory, or NULL */
	bool store_bf16;
};

extern const char *const smalti_vae_doing[SMALTI_VAE_DIRECTIONS]; /* "decoding" */

/* Bytes that are resident besides what a plan holds. */
int64_t smalti_vae_request_fixed_bytes(const struct smalti_vae_request *request);
/* What a plan may take in the session's memory and on the scratch directory's disk; -1 with an error. */
int smalti_vae_request_budget(const struct smalti_vae_request *request, struct smalti_vae_budget *budget,
			      struct smalti_error *error);
/* The fastest plan in that. SMALTI_ENOMEM with a message that says the least memory that would do. Free it in
 * any case. */
int smalti_vae_request_plan(const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			    struct smalti_error *error);
/* The same, and the file in the scratch directory if the plan offloads anything. End it in any case. */
int smalti_vae_request_begin(const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			     struct smalti_error *error);
void smalti_vae_request_end(struct smalti_vae_plan *plan);

#endif
