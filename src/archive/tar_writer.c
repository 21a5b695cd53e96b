/* SPDX-License-Identifier: Apache-2.0 */
#include "archive/tar_writer.h"
#include "archive/tar.h"

enum { BLOCK = SMALTI_TAR_BLOCK, RECORD = 20 * BLOCK };

static const int64_t LIMIT = INT64_C(1) << 33; /* eleven octal digits */

static void write_bytes(struct smalti_tar_writer *tar, const void *data, int64_t bytes)
{
	fwrite(data, 1, (size_t)bytes, tar->stream);
	tar->bytes += bytes;
}

static void fill_to(struct smalti_tar_writer *tar, int64_t unit)
{
	static const char zeros[BLOCK];
	while (tar->bytes % unit) {
		const int64_t missing = unit - tar->bytes % unit;
		write_bytes(tar, zeros, missing < BLOCK ? missing : BLOCK);
	}
}

static void write_header(struct smalti_tar_writer *tar, const char *name, char type, int64_t bytes)
{
	struct smalti_tar_header header = {.type = type, .magic = "ustar", .version = {'0', '0'}};
	memcpy(header.name, name, strlen(name)); /* at most 100 bytes, without a terminator then */
	snprintf(header.mode, sizeof(header.mode), "%07o", 0644);
	snprintf(header.owner, sizeof(header.owner), "%07o", 0);
	snprintf(header.group, sizeof(header.group), "%07o", 0);
	snprintf(header.size, sizeof(header.size), "%011" PRIo64, (uint64_t)bytes);
	snprintf(header.time, sizeof(header.time), "%011o", 0);
	snprintf(header.sum, sizeof(header.sum), "%06o", (unsigned)smalti_tar_sum(&header, false) & 0777777);
	header.sum[7] = ' ';
	write_bytes(tar, &header, BLOCK);
}

static bool is_plain(const char *name)
{
	size_t length = 0;
	while (name[length] && !(name[length] & 0x80))
		length++;
	return !name[length] && length <= sizeof(((struct smalti_tar_header *)NULL)->name);
}

/* Writes "LENGTH path=NAME\n", whose length counts its own digits. */
static int write_pax(struct smalti_tar_writer *tar, const char *name, struct smalti_error *error)
{
	const int64_t rest = (int64_t)strlen(" path=\n") + (int64_t)strlen(name);
	int64_t length = rest + 1;
	for (int64_t limit = 10; length >= limit; limit *= 10)
		length++;
	SCOPED(free) char *text = smalti_format(error, "%" PRId64 " path=%s\n", length, name);
	if (!text)
		return -1;
	write_header(tar, "pax", 'x', length);
	write_bytes(tar, text, length);
	fill_to(tar, BLOCK);
	return 0;
}

int smalti_tar_add(struct smalti_tar_writer *tar, const char *name, int64_t bytes, struct smalti_error *error)
{
	if (bytes >= LIMIT)
		return smalti_fail(error, SMALTI_EUNSUPPORTED,
				   "%s: %" PRId64 " bytes; a tar member has below 8 GiB", name, bytes);
	fill_to(tar, BLOCK);
	if (!is_plain(name) && write_pax(tar, name, error))
		return -1;
	write_header(tar, is_plain(name) ? name : "long", '0', bytes);
	return 0;
}

void smalti_tar_write(struct smalti_tar_writer *tar, const void *data, int64_t bytes)
{
	write_bytes(tar, data, bytes);
}

void smalti_tar_finish(struct smalti_tar_writer *tar)
{
	static const char zeros[2 * BLOCK];
	fill_to(tar, BLOCK);
	write_bytes(tar, zeros, sizeof(zeros));
	fill_to(tar, RECORD);
}
