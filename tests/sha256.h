/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>

/* Writes the digest of some bytes in hexadecimal, as in lists of golden values. */
void sha256_hex(const void *data, size_t length, char hex[65]);
