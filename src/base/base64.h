/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_BASE_BASE64_H
#define SMALTI_BASE_BASE64_H

#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

/* The bytes that padded base64 (RFC 4648, no line breaks) stands for, for free(). NULL with SMALTI_EFORMAT.
 */
uint8_t *smalti_base64_decode(const char *text, size_t *length, struct smalti_error *error);

#endif
