/* SPDX-License-Identifier: Apache-2.0 */
#include "store/digest.h"
#include "base/alloc.h"
#include "base/file.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <xxhash.h>

void smalti_hex_print(uint64_t value, char text[SMALTI_HEX_DIGITS + 1])
{
	snprintf(text, SMALTI_HEX_DIGITS + 1, "%016" PRIx64, value);
}

bool smalti_hex_parse(const char *text, uint64_t *value)
{
	uint64_t found = 0;
	for (int i = 0; i < SMALTI_HEX_DIGITS; i++) {
		const char c = text[i];
		const bool digit = c >= '0' && c <= '9';
		if (!digit && !(c >= 'a' && c <= 'f'))
			return false;
		found = found << 4 | (uint64_t)(digit ? c - '0' : c - 'a' + 10);
	}
	*value = found;
	return true;
}

static int digest_stream(FILE *stream, const char *path, XXH3_state_t *state, int64_t *bytes,
			 struct smalti_error *error)
{
	enum { BLOCK = 1 << 20 };
	SCOPED(free) char *block = smalti_aligned_alloc(BLOCK, 1, error);
	if (!block)
		return -1;
	*bytes = 0;
	for (size_t got = BLOCK; got == BLOCK;) {
		got = fread(block, 1, BLOCK, stream);
		XXH3_64bits_update(state, block, got);
		*bytes += (int64_t)got;
	}
	return ferror(stream) ? smalti_fail_errno(error, "%s: cannot be read", path) : 0;
}

int smalti_file_digest(const char *path, uint64_t *digest, int64_t *bytes, struct smalti_error *error)
{
	int64_t size;
	FILE *stream = smalti_open_stream(path, &size, error);
	if (!stream)
		return -1;
	XXH3_state_t *state = XXH3_createState();
	int status = state ? 0 : smalti_fail(error, SMALTI_ENOMEM, "no memory for a checksum");
	if (status == 0) {
		XXH3_64bits_reset(state);
		status = digest_stream(stream, path, state, bytes, error);
		*digest = XXH3_64bits_digest(state);
	}
	XXH3_freeState(state);
	fclose(stream);
	return status;
}
