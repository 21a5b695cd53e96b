/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_REQUEST_H
#define SMALTI_JOBS_VAE_REQUEST_H

#include "graphs/vae_ends.h"
#include "rt/session.h"
#include "smalti/vae.h"

extern const char *const smalti_vae_doing[]; /* by direction: "decoding" */

/* Whether its numbers are in range. */
int smalti_vae_request_check(const struct smalti_vae *vae, const struct smalti_vae_request *request,
			     struct smalti_error *error);

/* Bytes that are resident besides what a plan holds. */
int64_t smalti_vae_fixed_bytes(const struct smalti_vae_net *net);
/* What a plan may take in the session's memory and on the scratch directory's disk; -1 with an error. */
int smalti_vae_request_budget(const struct smalti_session *session, const struct smalti_vae_net *net,
			      const struct smalti_vae_request *request, struct smalti_vae_budget *budget,
			      struct smalti_error *error);
/* The fastest plan in that. SMALTI_ENOMEM with a message that says the least memory that would do. Free it in
 * any case. */
int smalti_vae_request_plan(const struct smalti_session *session, const struct smalti_vae_net *net,
			    const struct smalti_vae_request *request, struct smalti_vae_plan *plan,
			    struct smalti_error *error);

#endif
