/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SMALTI_TESTS_SHA256_H
#define SMALTI_TESTS_SHA256_H

#include <stddef.h>

/* The digest of some bytes in hexadecimal, as in lists of golden values. */
void sha256_hex(const void *data, size_t length, char hex[65]);

#endif
