/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_VAE_FORECAST_H
#define SMALTI_CLI_VAE_FORECAST_H

#include "smalti/vae.h"

/* What --plan prints on the standard output: for a person, or as a line of JSON. */
void smalti_vae_forecast_print(const struct smalti_vae_forecast *forecast, const char *doing);
void smalti_vae_forecast_print_json(const struct smalti_vae_forecast *forecast, const char *file);

#endif
