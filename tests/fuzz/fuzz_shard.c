/* SPDX-License-Identifier: Apache-2.0 */
#include "fuzz.h"

#include "shard/index.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { ROWS_READ = 64 };

/* Whatever the file, nothing outside of it is read: the checksum of a row goes over all that it points to. */
static void read_all(const char *path)
{
	struct smalti_error error = SMALTI_NO_ERROR;
	struct smalti_shard *shard = smalti_shard_open(path, &error);
	if (!shard != (error.code != SMALTI_OK))
		abort();
	for (int64_t i = 0;
	     shard && i < ROWS_READ && smalti_shard_info(shard)->first + i < smalti_shard_info(shard)->end;
	     i++) {
		struct smalti_features_row row;
		struct smalti_error cause = SMALTI_NO_ERROR;
		(void)smalti_shard_row_is_complete(shard, smalti_shard_info(shard)->first + i);
		if ((smalti_shard_row(shard, smalti_shard_info(shard)->first + i, &row, &cause) < 0) !=
		    (cause.code != SMALTI_OK))
			abort();
	}
	for (int64_t i = 0; shard && i < ROWS_READ && i < smalti_shard_info(shard)->failures; i++) {
		struct smalti_shard_failure failure;
		smalti_shard_failure(shard, i, &failure, NULL);
	}
	smalti_shard_close(shard);
}

static void read_bytes(const void *bytes, size_t size)
{
	char path[64];
	const int fd = memfd_create("shard", 0);
	if (fd < 0 || write(fd, bytes, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	read_all(path);
	close(fd);
}

/* Behind right checksums: the length of the index in 2 bytes, the index, then what is before it in the file.
 */
static void read_sealed(const uint8_t *data, size_t size)
{
	const size_t length = data[0] | (size_t)data[1] << 8;
	if (length > size - 2)
		return;
	const size_t before = 8 + size - 2 - length;
	char *file = malloc(before + length + SMALTI_SHARD_TRAILER + 1);
	memcpy(file, "\x89HDF\r\n\x1a\n", 8);
	memcpy(file + 8, data + 2 + length, size - 2 - length);
	struct smalti_shard_index index;
	if (smalti_shard_index_parse(&index, data + 2, (int64_t)length, (int64_t)before, NULL) < 0) {
		smalti_shard_index_free(&index);
		index =
		    (struct smalti_shard_index){.bytes = calloc(length + 1, 1), .length = (int64_t)length};
		memcpy(index.bytes, data + 2, length);
	}
	if (smalti_shard_index_seal(&index, file, (int64_t)before, file + before + length, NULL) < 0)
		abort();
	memcpy(file + before, index.bytes, length);
	read_bytes(file, before + length + SMALTI_SHARD_TRAILER);
	smalti_shard_index_free(&index);
	free(file);
}

FUZZER(data, size)
{
	if (size >= 2)
		read_sealed(data, size);
	read_bytes(data, size);
	return 0;
}
