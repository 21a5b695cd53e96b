/* SPDX-License-Identifier: Apache-2.0 */
#include "png_chunk.h"

#include <string.h>

void png_put32(uint8_t *to, uint64_t value)
{
	for (int i = 0; i < 4; i++)
		to[i] = (uint8_t)(value >> (24 - 8 * i));
}

static uint32_t checksum(const uint8_t *bytes, size_t length)
{
	uint32_t crc = UINT32_MAX;
	for (size_t i = 0; i < length; i++) {
		crc ^= bytes[i];
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0xedb88320 : 0);
	}
	return ~crc;
}

size_t png_put_chunk(uint8_t *to, const char *name, const void *data, size_t length)
{
	png_put32(to, length);
	memcpy(to + 4, name, 4);
	memcpy(to + 8, data, length);
	png_put32(to + 8 + length, checksum(to + 4, length + 4));
	return length + 12;
}

void png_put_claim(uint8_t to[PNG_CLAIM_BYTES], uint64_t width, uint64_t height, int interlace)
{
	uint8_t header[13] = {[8] = 8, [9] = 2, [12] = (uint8_t)interlace};
	png_put32(header, width);
	png_put32(header + 4, height);
	memcpy(to, "\x89PNG\r\n\x1a\n", 8);
	png_put_chunk(to + 8, "IHDR", header, sizeof(header));
	png_put_chunk(to + PNG_HEADER_BYTES, "IDAT", "", 0);
}
