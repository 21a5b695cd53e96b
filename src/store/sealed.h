/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_SEALED_H
#define SMALTI_STORE_SEALED_H

#include "base/json.h"

/* A JSON object in a file that ends with the key "xxh3": the checksum of every byte before it. */

/* Adds the key; the file appears complete or not at all. The object must not be empty. */
int smalti_sealed_write(const char *path, const cJSON *object, struct smalti_error *error);
/* Free with cJSON_Delete(). NULL with SMALTI_ECORRUPT if the checksum does not fit. */
cJSON *smalti_sealed_read(const char *path, struct smalti_error *error);

#endif
