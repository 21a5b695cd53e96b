/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_CLI_VAE_ESTIMATE_H
#define SMALTI_CLI_VAE_ESTIMATE_H

#include "smalti/vae.h"

#include <cjson/cJSON.h>

/* What --plan says: printed for a person, or as an object, for cJSON_Delete(). */
void smalti_vae_estimate_print(const struct smalti_vae_estimate *estimate, const char *doing);
cJSON *smalti_vae_estimate_json(const struct smalti_vae_estimate *estimate, const char *file);

#endif
