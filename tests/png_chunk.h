/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* PNG files by hand. */

enum { PNG_HEADER_BYTES = 33, PNG_CLAIM_BYTES = PNG_HEADER_BYTES + 12 };

void png_put32(uint8_t *to, uint64_t value);
/* Writes a chunk with its checksum: length + 12 bytes. Returns their number. */
size_t png_put_chunk(uint8_t *to, const char *name, const void *data, size_t length);
/* Writes a file that claims its extents (8-bit RGB) but has no pixels. */
void png_put_claim(uint8_t to[PNG_CLAIM_BYTES], uint64_t width, uint64_t height, int interlace);
