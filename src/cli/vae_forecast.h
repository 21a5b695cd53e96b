/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_VAE_FORECAST_H
#define SMALTI_CLI_VAE_FORECAST_H

#include "smalti/vae.h"

#include <cjson/cJSON.h>

/* What --plan says: printed for a person, or as an object, for cJSON_Delete(). */
void smalti_vae_forecast_print(const struct smalti_vae_forecast *forecast, const char *doing);
cJSON *smalti_vae_forecast_json(const struct smalti_vae_forecast *forecast, const char *file);

#endif
