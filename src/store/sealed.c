/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sealed.h"
#include "base/file.h"
#include "store/digest.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SEAL_BYTES = 64, LIMIT = 1 << 30 };

static size_t print_seal(const char *text, size_t length, char seal[SEAL_BYTES])
{
	char digest[SMALTI_HEX_DIGITS + 1];
	smalti_hex_print(XXH3_64bits(text, length), digest);
	return (size_t)snprintf(seal, SEAL_BYTES, ",\n\t\"xxh3\":\t\"%s\"\n}\n", digest);
}

int smalti_sealed_write(const char *path, const cJSON *object, struct smalti_error *error)
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
	return writer ? smalti_writer_commit(writer, error) : -1;
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
