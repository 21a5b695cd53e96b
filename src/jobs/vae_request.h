/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_REQUEST_H
#define SMALTI_JOBS_VAE_REQUEST_H

#include "graphs/vae_ends.h"
#include "graphs/vae_net.h"
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

/* How fast this CPU is at the layers of a VAE: seconds per floating-point operation of one worker for each
 * layer (layers->count), measured on a piece of each in a second or so. Owned by the caller; NULL with an
 * error. */
double *smalti_vae_speeds(const struct smalti_vae_net *layers, int64_t width, struct smalti_error *error);

#endif
