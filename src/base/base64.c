/* SPDX-License-Identifier: Apache-2.0 */
#include "base/base64.h"

/* Encodes three bytes, of which `bytes` exist. */
static void write_four(const unsigned char *data, int64_t bytes, char text[4])
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const unsigned all = (unsigned)data[0] << 16 | (bytes > 1 ? (unsigned)data[1] << 8 : 0) |
			     (bytes > 2 ? (unsigned)data[2] : 0);
	for (int i = 0; i < 4; i++)
		text[i] = '=';
	for (int i = 0; i < 4 && i <= bytes; i++)
		text[i] = digits[all >> (18 - 6 * i) & 63];
}

char *smalti_base64(const void *data, int64_t bytes, struct smalti_error *error)
{
	int64_t length = (bytes + 2) / 3;
	char *text = smalti_multiply(&length, 4) ? smalti_calloc(length + 1, 1, error) : NULL;
	for (int64_t i = 0; text && i < bytes; i += 3)
		write_four((const unsigned char *)data + i, bytes - i, text + i / 3 * 4);
	return text;
}
