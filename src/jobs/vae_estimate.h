/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_ESTIMATE_H
#define SMALTI_JOBS_VAE_ESTIMATE_H

#include "jobs/vae_request.h"
#include "smalti/vae.h"

/* What a request takes, on the machine as it shows itself in a short trial. */
int smalti_vae_request_estimate(const struct smalti_vae_request *request,
				struct smalti_vae_estimate *estimate, struct smalti_error *error);

#endif
