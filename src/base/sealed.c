/* SPDX-License-Identifier: Apache-2.0 */
#include "base/sealed.h"
#include "base/file.h"

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
	SCOPED(fclose) FILE *stream = smalti_open_stream(path, &size, error);
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
	return status;
}

enum { SEAL_BYTES = 64, LIMIT = 1 << 30 };

static size_t print_seal(const char *text, size_t length, char seal[SEAL_BYTES])
{
	char digest[SMALTI_HEX_DIGITS + 1];
	smalti_hex_print(XXH3_64bits(text, length), digest);
	return (size_t)snprintf(seal, SEAL_BYTES, ",\n\t\"xxh3\":\t\"%s\"\n}\n", digest);
}

static int write_sealed(const char *path, const cJSON *object,
			int (*end)(struct smalti_writer *writer, struct smalti_error *error),
			struct smalti_error *error)
{
	SCOPED(free) char *text = cJSON_Print(object);
	if (!text)
		return smalti_fail(error, SMALTI_ENOMEM, "%s: out of memory for the text", path);
	const size_t length = strlen(text) - strlen("\n}");
	char seal[SEAL_BYTES];
	print_seal(text, length, seal);
	struct smalti_writer *writer = smalti_writer_open(path, error);
	if (writer) {
		fwrite(text, 1, length, smalti_writer_stream(writer));
		fputs(seal, smalti_writer_stream(writer));
	}
	return writer ? end(writer, error) : -1;
}

int smalti_sealed_write(const char *path, const cJSON *object, struct smalti_error *error)
{
	return write_sealed(path, object, smalti_writer_commit, error);
}

int smalti_sealed_place(const char *path, const cJSON *object, struct smalti_error *error)
{
	return write_sealed(path, object, smalti_writer_place, error);
}

cJSON *smalti_sealed_read(const char *path, struct smalti_error *error)
{
	size_t length;
	SCOPED(free) char *text = smalti_file_read(path, LIMIT, &length, error);
	if (!text)
		return NULL;
	char seal[SEAL_BYTES];
	const size_t sealed = print_seal("", 0, seal);
	cJSON *object = NULL;
	if (length > sealed)
		print_seal(text, length - sealed, seal);
	if (length <= sealed || memcmp(text + length - sealed, seal, sealed) != 0)
		smalti_fail(error, SMALTI_ECORRUPT, "its checksum does not fit");
	else
		object = smalti_json_parse(text, length, error);
	if (!object)
		smalti_error_prefix(error, "%s", path);
	return object;
}
