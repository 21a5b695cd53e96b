/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_JOBS_VAE_FORECAST_H
#define SMALTI_JOBS_VAE_FORECAST_H

#include "jobs/vae_tiling.h"
#include "smalti/vae.h"

/* What running a half as it is asked for takes, on the machine as it shows itself in a short trial. */
int smalti_vae_half_foresee(const struct smalti_vae_half *half, struct smalti_vae_forecast *forecast,
			    struct smalti_error *error);

#endif
