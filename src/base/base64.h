/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "base/base.h"

/* Encodes bytes as text (RFC 4648, section 4, with padding); NULL with an error. Free with free(). */
char *smalti_base64(const void *data, int64_t bytes, struct smalti_error *error);
