/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/json.h"

/* A JSON object in a file that ends with the key "xxh3": the checksum of every byte before it. */

/* Adds the key; the file appears complete or not at all. The object must not be empty. */
int smalti_sealed_write(const char *path, const cJSON *object, struct smalti_error *error);
/* Does as smalti_sealed_write() without waiting for the disk: after a loss of power the file may be torn. */
int smalti_sealed_place(const char *path, const cJSON *object, struct smalti_error *error);
/* Returns an object for cJSON_Delete(). NULL with SMALTI_ECORRUPT if the checksum does not fit. */
cJSON *smalti_sealed_read(const char *path, struct smalti_error *error);

/* XXH3 of 64 bits as it stands in files: 16 hexadecimal digits. */
enum { SMALTI_HEX_DIGITS = 16 };

void smalti_hex_print(uint64_t value, char text[SMALTI_HEX_DIGITS + 1]);
/* Returns false unless the text begins with 16 lowercase digits. */
bool smalti_hex_parse(const char *text, uint64_t *value);

/* Hashes and measures a whole file. Never by mapping: a file that is cut short meanwhile is an error then. */
int smalti_file_digest(const char *path, uint64_t *digest, int64_t *bytes, struct smalti_error *error);
