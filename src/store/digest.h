/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_STORE_DIGEST_H
#define SMALTI_STORE_DIGEST_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* XXH3 of 64 bits as it stands in files: 16 hexadecimal digits. */
enum { SMALTI_HEX_DIGITS = 16 };

void smalti_hex_print(uint64_t value, char text[SMALTI_HEX_DIGITS + 1]);
/* False unless the text begins with 16 lowercase digits. */
bool smalti_hex_parse(const char *text, uint64_t *value);

/* Of a whole file, with its size. Never by mapping: a file that is cut short meanwhile is an error then. */
int smalti_file_digest(const char *path, uint64_t *digest, int64_t *bytes, struct smalti_error *error);

#endif
